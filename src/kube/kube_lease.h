// KubeLease: leader election through a coordination.k8s.io Lease, as client-go does it.
//
// Expiry is measured by the own monotonic clock from the moment the record was last seen to change:
// steps of a wall clock and clocks of other machines do not matter. kube_lease_held is true only
// while the renewal deadline of the last successful renewal has not passed; the caller asks before
// every write.
#pragma once

#include "base/rng.h"
#include "kube/kube_api.h"

typedef struct KubeLeaseOptions {  // 0: the default
    const char *namespace_name, *name, *identity;
    TimeNs      duration;  // 9 s
    TimeNs      deadline;  // 6 s: without a renewal for so long it is no longer held
    TimeNs      period;    // 1.5 s
} KubeLeaseOptions;

typedef struct KubeLease KubeLease;

// changed() is called when it is acquired and when it is lost, but not by a release; it may stop
// the lease. After a loss it goes on as a candidate. The identity must be no other process's.
MUST_USE Err kube_lease_start(KubeLease **out, KubeApi *a, Loop *l, const KubeLeaseOptions *o,
                              Rng rng, void (*changed)(void *self, bool held), void *self);
bool         kube_lease_held(const KubeLease *x);
const char  *kube_lease_holder(const KubeLease *x);  // as last seen; "": none
// Releases it if it is held (holderIdentity ""), then calls done() from the loop; it is not held
// from now on, and not acquired again.
void kube_lease_release(KubeLease *x, void (*done)(void *self), void *self);
void kube_lease_stop(KubeLease *x);  // accepts NULL
