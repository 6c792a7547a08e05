// Preemption by priority: room for a job that waits, at the cost of the fewest gangs of lower
// priority. It is counted in resources; whether a pod may run on a node at all is asked of
// kube_fit.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_plan.h"

typedef struct RoomSearch {
    KubePlan    *plan;
    KubeJob     *job;
    KubeAmounts *left;       // [n_nodes] free, with what was given and taken so far
    bool        *victims;    // [n_slots]
    bool        *tried;      // [n_slots] in the search on one node
    uint32_t    *first;      // [n_nodes + 1] of residents
    uint32_t    *residents;  // slots of jobs with a pod there, by node; a job may occur twice
} RoomSearch;

static bool suffices(const KubeAmounts *left, const KubeAmounts *need) {
    for (uint32_t r = 0; r < KUBE_RESOURCES; r++)
        if (need->of[r] > 0 && left->of[r] < need->of[r]) return false;
    return true;
}

static void add(KubeAmounts *to, const KubeAmounts *a, int64_t sign) {
    for (uint32_t r = 0; r < KUBE_RESOURCES; r++) to->of[r] += sign * a->of[r];
}

// What all pods of a job hold, on one node or on all of them.
static void give(RoomSearch *x, const KubeJob *victim, KubeAmounts *left, uint32_t only) {
    for (uint32_t i = 0; i < victim->n; i++) {
        const KubeMember *m = &victim->members[i];
        if (!m->bound || m->server == CLUSTER_NONE) continue;
        if (only != CLUSTER_NONE && m->server != only) continue;
        KubeAmounts *to = only != CLUSTER_NONE ? left : &x->left[m->server];
        add(to, &kube_pod_info(m->pod)->requests, 1);
    }
}

// Of lowest priority, then the one that began last, so that the least work is lost.
static KubeJob *next_victim(const RoomSearch *x, uint32_t server) {
    const KubeJobs *jobs = x->plan->jobs;
    KubeJob        *best = NULL;
    for (uint32_t k = x->first[server]; k < x->first[server + 1]; k++) {
        uint32_t i = x->residents[k];
        KubeJob *j = jobs->at[i];
        if (x->victims[i] || x->tried[i] || j->evicted) continue;
        if (!kube_plan_may_evict(x->plan, j, x->job)) continue;
        const ClusterTask *a = &jobs->tasks[i], *b = best ? &jobs->tasks[best->slot] : NULL;
        if (b == NULL || a->job.priority < b->job.priority ||
            (a->job.priority == b->job.priority && a->since > b->since))
            best = j;
    }
    return best;
}

typedef struct RoomCost {
    uint32_t gangs;
    int32_t  priority;  // the highest of them
} RoomCost;

// Gangs to stop so that the pod fits on the node; false: none suffice. They are left in x->tried.
static bool cost_on(RoomSearch *x, const KubeMember *m, uint32_t server, RoomCost *out) {
    const KubeAmounts *need = &kube_pod_info(m->pod)->requests;
    KubeAmounts        left = x->left[server];
    KubeVerdict        why;
    *out = (RoomCost){0, INT32_MIN};
    memset(x->tried, 0, x->plan->jobs->n_slots * sizeof *x->tried);
    KubeNode *node = x->plan->nodes[server];
    if (!kube_fit_ever(x->plan->state, m->pod, node, &why)) return false;
    if (!kube_fit(x->plan->state, m->pod, node, NULL, &why) && why.reason != FIT_INSUFFICIENT &&
        why.reason != FIT_PODS)
        return false;  // other rules than resources are in its way
    while (!suffices(&left, need)) {
        KubeJob *v = next_victim(x, server);
        if (v == NULL) return false;
        x->tried[v->slot] = true;
        give(x, v, &left, server);
        out->gangs++;
        int32_t priority = x->plan->jobs->tasks[v->slot].job.priority;
        if (priority > out->priority) out->priority = priority;
    }
    return true;
}

static bool is_less(const RoomCost *a, const RoomCost *b) {
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->gangs < b->gangs;
}

static bool find_for(RoomSearch *x, const KubeMember *m) {
    uint32_t best = CLUSTER_NONE;
    RoomCost least = {0}, here;
    for (uint32_t i = 0; i < x->plan->n_nodes; i++) {
        if (!cost_on(x, m, i, &here)) continue;
        if (best != CLUSTER_NONE && !is_less(&here, &least)) continue;
        best = i;
        least = here;
        if (here.gangs == 0) break;
    }
    if (best == CLUSTER_NONE) return false;
    (void)cost_on(x, m, best, &here);
    const KubeJobs *jobs = x->plan->jobs;
    for (uint32_t i = 0; i < jobs->n_slots; i++) {
        if (!x->tried[i]) continue;
        x->victims[i] = true;
        give(x, jobs->at[i], NULL, CLUSTER_NONE);
    }
    add(&x->left[best], &kube_pod_info(m->pod)->requests, -1);
    return true;
}

static void set_left(RoomSearch *x) {
    for (uint32_t i = 0; i < x->plan->n_nodes; i++) {
        const KubeNodeInfo *n = kube_node_info(x->plan->nodes[i]);
        x->left[i] = n->allocatable;
        add(&x->left[i], &n->used, -1);
    }
}

static Err make_room(RoomSearch *x) {
    KubeJobs *jobs = x->plan->jobs;
    bool      found = true;
    memset(x->victims, 0, jobs->n_slots * sizeof *x->victims);
    set_left(x);
    for (uint32_t i = 0; i < x->job->n && found; i++)
        if (x->job->members[i].chosen && x->job->members[i].free)
            found = find_for(x, &x->job->members[i]);
    for (uint32_t i = 0; i < jobs->n_slots && found; i++)
        if (x->victims[i]) TRY(kube_plan_evict(x->plan, jobs->at[i], x->job));
    return ERR_OK;
}

// Waiting, not started by this plan, and above the priority of something that runs.
static bool may_claim(const KubePlan *p, const KubeJob *j, int32_t lowest) {
    if (j == NULL || j->phase != KUBE_JOB_READY || j->waits_for_room) return false;
    for (uint32_t i = 0; i < j->n; i++)
        if (j->members[i].bound) return false;
    return p->jobs->tasks[j->slot].job.priority > lowest &&
           p->jobs->now - j->claimed_at >= CLUSTER_SECOND;
}

static int32_t lowest_running(const KubeJobs *x) {
    int32_t lowest = INT32_MAX;
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->at[i] != NULL && x->at[i]->phase == KUBE_JOB_RUNS &&
            x->tasks[i].job.priority < lowest)
            lowest = x->tasks[i].job.priority;
    return lowest;
}

static KubeJob *next_claim(const KubePlan *p, int32_t lowest) {
    KubeJobs *x = p->jobs;
    KubeJob  *best = NULL;
    for (uint32_t i = 0; i < x->n_slots; i++) {
        KubeJob *j = x->at[i];
        if (!may_claim(p, j, lowest)) continue;
        int32_t a = x->tasks[i].job.priority, b = best ? x->tasks[best->slot].job.priority : 0;
        if (best == NULL || a > b || (a == b && j->first < best->first)) best = j;
    }
    return best;
}

// Residents by node: counted, then written.
static Err list_residents(RoomSearch *x) {
    const KubeJobs *jobs = x->plan->jobs;
    uint32_t        n = x->plan->n_nodes;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < jobs->n_slots; i++)
            for (uint32_t k = 0; jobs->at[i] != NULL && k < jobs->at[i]->n; k++) {
                const KubeMember *m = &jobs->at[i]->members[k];
                if (!m->bound || m->server >= n) continue;
                if (pass == 0) x->first[m->server + 2]++;
                if (pass == 1) x->residents[x->first[m->server + 1]++] = i;
            }
        if (pass == 1) break;
        for (uint32_t i = 0; i < n; i++) x->first[i + 2] += x->first[i + 1];
        x->residents = calloc(x->first[n + 1] + 1, sizeof *x->residents);
        if (x->residents == NULL) return err_set(ERR_LIMIT, "no memory to look for room");
    }
    return ERR_OK;
}

Err kube_plan_preempt(KubePlan *p, uint32_t most) {
    const KubePlanRules *r = p->rules;
    KubeJobs            *x = p->jobs;
    if (r->act != KUBE_ACT_ALL || r->preemption == KUBE_PREEMPT_NONE) return ERR_OK;
    RoomSearch s = {.plan = p,
                    .left = calloc(p->n_nodes + 1, sizeof *s.left),
                    .victims = calloc(x->n_slots + 1, sizeof *s.victims),
                    .tried = calloc(x->n_slots + 1, sizeof *s.tried),
                    .first = calloc(p->n_nodes + 2, sizeof *s.first)};
    Err        e = ERR_OK;
    int32_t    lowest = lowest_running(x);
    bool       some = next_claim(p, lowest) != NULL;
    if (s.left == NULL || s.victims == NULL || s.tried == NULL || s.first == NULL)
        e = err_set(ERR_LIMIT, "no memory to look for room");
    else if (some)
        e = list_residents(&s);
    while (e == ERR_OK && most-- > 0 && (s.job = next_claim(p, lowest)) != NULL) {
        s.job->claimed_at = x->now;
        e = make_room(&s);
    }
    free(s.left);
    free(s.victims);
    free(s.tried);
    free(s.first);
    free(s.residents);
    return e;
}
