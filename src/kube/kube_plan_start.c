// Where the pods of one job go: on the servers of the plan's slices, or near them.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_plan.h"

static int64_t gpus_of(const KubeMember *m) { return kube_pod_info(m->pod)->requests.of[KUBE_GPU]; }

static void forget(KubePlan *p, uint32_t first) {
    while (p->n > first) {
        KubeStep *s = &p->steps[--p->n];
        if (s->kind != KUBE_STEP_BIND) continue;
        kube_state_forget(p->state, s->member->pod);
        s->member->bound = false;
    }
}

static Err bind(KubePlan *p, KubeJob *j, KubeMember *m, KubeNode *node) {
    TRY(kube_plan_add(p, (KubeStep){.kind = KUBE_STEP_BIND, .job = j, .member = m, .node = node}));
    kube_state_assume(p->state, m->pod, node);
    m->bound = true;
    return ERR_OK;
}

// On a slice with GPUs left for the pod; pods without GPUs on any.
static KubeNode *on_slices(KubePlan *p, KubeMember *m, const ClusterSlice *s, uint32_t n,
                           KubeVerdict *why) {
    int64_t gpus = gpus_of(m);
    for (uint32_t i = 0; i < n; i++) {
        if (gpus > 0 && p->gpus_left[i] < gpus) continue;
        KubeNode *node = p->nodes[s[i].server];
        if (!kube_fit(p->state, m->pod, node, NULL, why)) continue;
        p->gpus_left[i] -= (uint32_t)gpus;
        return node;
    }
    return NULL;
}

typedef struct NodeWorth {
    bool    near;  // in the rack of the job's other pods
    int64_t score, left_gpus, left_cores;
} NodeWorth;

// Near, then what the pod prefers, then the fullest that suffices, so that wide room stays.
static bool is_better(const NodeWorth *a, const NodeWorth *b) {
    if (a->near != b->near) return a->near;
    if (a->score != b->score) return a->score > b->score;
    if (a->left_gpus != b->left_gpus) return a->left_gpus < b->left_gpus;
    return a->left_cores < b->left_cores;
}

static NodeWorth worth_of(const KubePlan *p, const KubeMember *m, const KubeNode *node,
                          const char *rack) {
    const KubeNodeInfo *n = kube_node_info(node);
    return (NodeWorth){.near = rack != NULL && strcmp(n->rack, rack) == 0,
                       .score = kube_fit_score(p->state, m->pod, node),
                       .left_gpus = n->allocatable.of[KUBE_GPU] - n->used.of[KUBE_GPU],
                       .left_cores = n->allocatable.of[KUBE_CPU] - n->used.of[KUBE_CPU]};
}

static KubeNode *anywhere(const KubePlan *p, const KubeMember *m, const char *rack,
                          KubeVerdict *why) {
    KubeNode   *best = NULL;
    NodeWorth   most = {.near = false};
    KubeVerdict here;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (!kube_fit(p->state, m->pod, p->nodes[i], NULL, &here)) {
            if (best == NULL) *why = here;
            continue;
        }
        NodeWorth x = worth_of(p, m, p->nodes[i], rack);
        if (best != NULL && !is_better(&x, &most)) continue;
        best = p->nodes[i];
        most = x;
    }
    return best;
}

// The pods with the most GPUs first.
static KubeMember *next_member(KubeJob *j) {
    KubeMember *best = NULL;
    for (uint32_t i = 0; i < j->n; i++) {
        KubeMember *m = &j->members[i];
        if (m->chosen && m->free && !m->bound && (best == NULL || gpus_of(m) > gpus_of(best)))
            best = m;
    }
    return best;
}

static Err note_slices(KubePlan *p, const ClusterSlice *s, uint32_t n) {
    if (p->gpus_left_room < n) {
        uint32_t *more = realloc(p->gpus_left, n * sizeof *more);
        if (more == NULL) return err_set(ERR_LIMIT, "no memory for a plan");
        p->gpus_left = more;
        p->gpus_left_room = n;
    }
    for (uint32_t i = 0; i < n; i++) p->gpus_left[i] = s[i].gpus;
    return ERR_OK;
}

// Every pod on the slices alone, or else anywhere with `rack` preferred.
static Err place_all(KubePlan *p, KubeJob *j, const ClusterSlice *s, uint32_t n, const char *rack,
                     bool *placed, KubeVerdict *why) {
    uint32_t    first = p->n;
    KubeMember *m;
    *placed = false;
    TRY(note_slices(p, s, n));
    while ((m = next_member(j)) != NULL) {
        KubeNode *node = n > 0 ? on_slices(p, m, s, n, why) : anywhere(p, m, rack, why);
        if (node == NULL) {
            forget(p, first);
            return ERR_OK;
        }
        TRY(bind(p, j, m, node));
        if (rack == NULL && n == 0) rack = kube_node_info(node)->rack;
    }
    *placed = p->n > first;
    return ERR_OK;
}

Err kube_plan_start(KubePlan *p, KubeJob *j, const ClusterSlice *s, uint32_t n, bool *started,
                    bool *moved, KubeVerdict *why) {
    const char *rack = NULL;
    *started = *moved = false;
    if (p->rules->act == KUBE_ACT_NONE) return ERR_OK;
    if (n > 0) {
        TRY(place_all(p, j, s, n, NULL, started, why));
        if (*started || j->waits_for_room) return ERR_OK;
        rack = kube_node_info(p->nodes[s[0].server])->rack;
        *moved = true;
    }
    return place_all(p, j, NULL, 0, rack, started, why);
}
