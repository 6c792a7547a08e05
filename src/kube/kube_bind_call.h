// KubeBindCall: one bind for the extender: the pod is read back when the answer does not say what
// became of it.
#pragma once

#include "kube/kube_api.h"
#include "kube/kube_server.h"

// b->done() is called later, or at once without memory.
void kube_bind_call(KubeApi *a, const KubePodInfo *p, const char *node, KubeBinding *b);
