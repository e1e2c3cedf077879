// A copy of the project's yardstick, for benchmarks/speed.py; no part of the product.
// The yardstick: a plain C batch stepper for Russian Solitaire (random legal play, auto-reset, masks,
// "board"-like observation), as a measure of what this machine can do. No part of the product.
//   gcc -O3 -march=native step.c -o step && ./step RELAXED(0|1) ENVS STEPS_PER_ENV WRITE_OBS(0|1)
//   ./step 0 1024 20000 1     prints millions of steps a second, one thread
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef struct {int8_t col[7][52]; int8_t n[7], down[7], found[4]; int8_t colof[52], idxof[52]; uint64_t s; int nl; int16_t lg[40];} E;
static inline uint64_t rnd(uint64_t*s){uint64_t x=*s;x^=x<<13;x^=x>>7;x^=x<<17;return *s=x;}
static void deal(E*e){uint8_t p[52];for(int i=0;i<52;i++)p[i]=i;for(int i=51;i>0;i--){uint32_t j=((rnd(&e->s)>>32)*(uint64_t)(i+1))>>32;uint8_t t=p[i];p[i]=p[j];p[j]=t;}
 int k=0;for(int j=0;j<7;j++){int m=j?5+j:1;e->n[j]=m;e->down[j]=j;for(int i=0;i<m;i++){int c=p[k++];e->col[j][i]=c;e->colof[c]=j;e->idxof[c]=i;}memset(e->col[j]+m,-1,52-m);}memset(e->found,0,4);}
static void legal(E*e,uint8_t*mask,int relaxed){for(int i=0;i<e->nl;i++)mask[e->lg[i]]=0;int k=0;
 for(int j=0;j<7;j++){if(e->n[j]==0){for(int s=0;s<4;s++){int c=s*13+12,a=e->colof[c];if(a<7&&e->idxof[c]>=e->down[a]&&e->idxof[c]>0&&e->n[a]-e->idxof[c]<=20)e->lg[k++]=c*8+j;}}
 else{int d=e->col[j][e->n[j]-1];int s=d/13,r=d-13*s;if(e->found[s]==r)e->lg[k++]=d*8+7;if(r>0){if(relaxed){for(int t=0;t<4;t++){int c=t*13+r-1,a=e->colof[c];if(a<7&&a!=j&&e->idxof[c]>=e->down[a]&&e->n[a]-e->idxof[c]<=20)e->lg[k++]=c*8+j;}}
  else{int c=d-1,a=e->colof[c];if(a<7&&a!=j&&e->idxof[c]>=e->down[a]&&e->n[a]-e->idxof[c]<=20)e->lg[k++]=c*8+j;}}}}
 e->nl=k;for(int i=0;i<k;i++)mask[e->lg[i]]=1;}
static int apply(E*e,int act){int c=act>>3,d=act&7,a=e->colof[c],i=e->idxof[c],r=0;
 if(d==7){e->found[c/13]++;e->colof[c]=7;e->n[a]--;e->col[a][e->n[a]]=-1;r=10;}
 else{int m=e->n[d];for(int k=i;k<e->n[a];k++){int x=e->col[a][k];e->col[a][k]=-1;e->col[d][m]=x;e->colof[x]=d;e->idxof[x]=m++;}e->n[d]=m;e->n[a]=i;}
 if(e->n[a]>0&&e->down[a]==e->n[a]){e->down[a]--;r+=5;}return r;}
static void obs(E*e,int8_t*o){ // tokens 7*52 + found
 memcpy(o,e->col,364);for(int j=0;j<7;j++)memset(o+52*j,53,e->down[j]);memcpy(o+364,e->found,4);}
int main(int ac,char**av){int relaxed=atoi(av[1]);int N=atoi(av[2]);long T=atol(av[3]);int wo=atoi(av[4]);
 E*es=calloc(N,sizeof(E));uint8_t*mask=calloc(N,416);int8_t*ob=calloc(N,368);float*rw=calloc(N,4);uint8_t*dn=calloc(N,1);int*tt=calloc(N,4);int32_t*ac_=calloc(N,4);
 for(int i=0;i<N;i++){es[i].s=88172645463325252ull+i*7919;for(int k=0;k<10;k++)rnd(&es[i].s);deal(es+i);legal(es+i,mask+416*i,relaxed);}
 struct timespec a,b;clock_gettime(CLOCK_MONOTONIC,&a);long steps=0,games=0,wins=0;
 for(long t=0;t<T;t++){
  for(int i=0;i<N;i++){E*e=es+i;ac_[i]=e->nl?e->lg[((rnd(&e->s)>>32)*(uint64_t)e->nl)>>32]:0;}
  for(int i=0;i<N;i++){E*e=es+i;if(e->nl==0||tt[i]>=500){games++;int f=e->found[0]+e->found[1]+e->found[2]+e->found[3];wins+=f==52;deal(e);tt[i]=0;rw[i]=0;dn[i]=1;}
   else{rw[i]=apply(e,ac_[i]);dn[i]=0;tt[i]++;}
   legal(e,mask+416*i,relaxed);if(wo)obs(e,ob+368*i);steps++;}
 }
 clock_gettime(CLOCK_MONOTONIC,&b);double dt=(b.tv_sec-a.tv_sec)+1e-9*(b.tv_nsec-a.tv_nsec);
 printf("relaxed=%d N=%d obs=%d: %.2fM steps/s games %ld win %.3f%%\n",relaxed,N,wo,steps/dt/1e6,games,100.0*wins/games);}
