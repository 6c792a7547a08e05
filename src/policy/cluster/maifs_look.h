// MaifsLook: servers, jobs, the queue and offers as the numbers that agents see, all near 0 .. 1.
#pragma once

#include "policy/cluster/maifs_net.h"
#include "policy/cluster/offer.h"

void maifs_look_server(const ClusterSetup *s, const Inn *inn, const Want *wants, float *out);
void maifs_look_job(const ClusterView *v, const Want *w, const ClusterTask *t, float *out);
void maifs_look_queue(const ClusterView *v, const Want *wants, float *out);
void maifs_look_offer(const Inn *inn, const Want *w, const Offer *o, float *out);
