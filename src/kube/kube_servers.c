// Sets of servers: where the pods of a job may run if they were empty. Equal sets share one
// pointer.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_fit.h"
#include "kube/kube_jobs.h"

enum { SETS = 4096 };

typedef struct KubeBitSet {
    struct KubeBitSet *next;
    uint64_t           bits[];
} KubeBitSet;

void kube_servers_clear(KubeJobs *x) {
    for (KubeBitSet *s = x->bits.first, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    x->bits = (KubeBits){.generation = x->bits.generation + 1, .order = x->bits.order};
    for (uint32_t i = 0; i < x->n_slots; i++) {
        x->tasks[i].job.servers = NULL;
        if (x->at[i] != NULL) x->at[i]->ready_at = 0;
    }
}

static const uint64_t *intern(KubeJobs *x, const uint64_t *bits) {
    size_t bytes = x->bits.words * sizeof *bits;
    for (KubeBitSet *s = x->bits.first; s != NULL; s = s->next)
        if (memcmp(s->bits, bits, bytes) == 0) return s->bits;
    KubeBitSet *s = malloc(sizeof *s + bytes);
    if (s == NULL) return NULL;
    memcpy(s->bits, bits, bytes);
    s->next = x->bits.first;
    x->bits.first = s;
    x->bits.n++;
    return s->bits;
}

static bool has_all(const KubeJobs *x, const uint64_t *bits) {
    for (uint32_t i = 0; i < x->bits.n_servers; i++)
        if ((bits[i / 64] >> i % 64 & 1) == 0) return false;
    return true;
}

static bool is_empty(const uint64_t *bits, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        if (bits[i] != 0) return false;
    return true;
}

// The node could not hold the pod even if it were empty. Amounts of a fungible pod may be others.
static bool is_too_small(const KubeNodeInfo *n, const KubePodInfo *p) {
    for (uint32_t k = p->fungible ? KUBE_EPHEMERAL : 0; k < KUBE_RESOURCES; k++)
        if (p->requests.of[k] > n->allocatable.of[k]) return true;
    return false;
}

// With nodes that are too small, a policy would spread such a pod over several of them.
static void drop_too_small(const KubeState *s, const KubePod *p, uint64_t *bits) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    for (uint32_t i = 0; i < n; i++)
        if (is_too_small(kube_node_info(nodes[i]), kube_pod_info(p)))
            bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

// Servers that all of the job's pods may use; if they have none in common, those that any may.
static void find(const KubeState *s, const KubeJob *j, uint32_t words, uint64_t *all, uint64_t *any,
                 uint64_t *one) {
    bool first = true;
    memset(any, 0, words * sizeof *any);
    memset(all, 0, words * sizeof *all);
    for (uint32_t i = 0; i < j->n; i++) {
        if (!j->members[i].chosen) continue;
        memset(one, 0, words * sizeof *one);
        kube_fit_nodes(s, j->members[i].pod, one);
        drop_too_small(s, j->members[i].pod, one);
        for (uint32_t k = 0; k < words; k++) {
            all[k] = first ? one[k] : all[k] & one[k];
            any[k] |= one[k];
        }
        first = false;
    }
    if (is_empty(all, words)) memcpy(all, any, words * sizeof *all);
}

Err kube_servers_of(KubeJobs *x, const KubeState *s, KubeJob *j) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes), words = (n + 63) / 64 + (n == 0);
    if (x->bits.n_servers != n || x->bits.n >= SETS) kube_servers_clear(x);
    x->bits.n_servers = n;
    x->bits.words = words;
    uint64_t *scratch = calloc((size_t)3 * words, sizeof *scratch);
    if (scratch == NULL) return err_set(ERR_LIMIT, "no memory for sets of %u nodes", n);
    find(s, j, words, scratch, scratch + words, scratch + 2 * words);
    const uint64_t *set = has_all(x, scratch) ? NULL : intern(x, scratch);
    ClusterJob     *to = &x->tasks[j->slot].job;
    if (x->tasks[j->slot].state == CLUSTER_WAITING && set != to->servers)
        x->reason |= CLUSTER_SERVERS;
    to->servers = set;
    j->ready_at = kube_state_version(s) + 1;
    bool failed = set == NULL && !has_all(x, scratch);
    free(scratch);
    return failed ? err_set(ERR_LIMIT, "no memory for sets of %u nodes", n) : ERR_OK;
}

Err kube_servers_find(KubeJobs *x, const KubeState *s, uint32_t most) {
    uint64_t now = kube_state_version(s) + 1;
    for (uint32_t pass = 0; pass < 2; pass++)  // first those that wait for their first set
        for (uint32_t k = 0; k < x->n_slots && most > 0; k++) {
            uint32_t i = (k + x->find_next) % x->n_slots;
            KubeJob *j = x->at[i];
            if (j == NULL || j->phase != KUBE_JOB_READY || j->ready_at == now) continue;
            if (pass == 0 && j->ready_at != 0) continue;
            TRY(kube_servers_of(x, s, j));
            if (pass == 1) x->find_next = i + 1;
            most--;
        }
    return ERR_OK;
}
