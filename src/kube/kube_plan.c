#include "kube/kube_plan.h"

#include <stdlib.h>
#include <string.h>

enum { CRITICAL = 2000000000 };  // priority of the system's own pods, at least

static const TimeNs room_patience = 120 * CLUSTER_SECOND;

void kube_plan_init(KubePlan *p, KubeState *s, KubeJobs *x, const KubePlanRules *r) {
    *p = (KubePlan){.state = s, .jobs = x, .rules = r};
}

void kube_plan_finish(KubePlan *p) {
    free(p->steps);
    free(p->gpus_left);
}

void kube_plan_open(KubePlan *p) {
    p->n_nodes = kube_state_nodes(p->state, &p->nodes);
    p->version = kube_state_version(p->state);
    p->n = 0;
}

Err kube_plan_add(KubePlan *p, KubeStep s) {
    if (p->n == p->room) {
        uint32_t  room = p->room > 0 ? 2 * p->room : 64;
        KubeStep *more = realloc(p->steps, room * sizeof *more);
        if (more == NULL) return err_set(ERR_LIMIT, "no memory for a plan");
        p->steps = more;
        p->room = room;
    }
    p->steps[p->n++] = s;
    return ERR_OK;
}

void kube_plan_tell(KubePlan *p, KubeNote n) {
    p->notes[n.kind]++;
    if (p->note != NULL) p->note(p->self, &n);
}

static bool is_critical(const KubeJob *j, const ClusterTask *t) {
    return t->job.priority >= CRITICAL || strcmp(j->namespace_name, "kube-system") == 0;
}

static bool never_preempts(const KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++)
        if (!kube_pod_info(j->members[i].pod)->may_preempt) return true;
    return false;
}

// Some disruption budget forbids the eviction of one of its pods now.
static bool is_protected(const KubePlan *p, const KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++)
        if (j->members[i].bound && kube_state_disruptions(p->state, j->members[i].pod) == 0)
            return true;
    return false;
}

bool kube_plan_may_evict(const KubePlan *p, const KubeJob *victim, const KubeJob *for_job) {
    const ClusterTask   *v = &p->jobs->tasks[victim->slot], *f = &p->jobs->tasks[for_job->slot];
    const KubePlanRules *r = p->rules;
    if (r->act != KUBE_ACT_ALL || r->preemption == KUBE_PREEMPT_NONE) return false;
    if (victim == for_job || victim->phase != KUBE_JOB_RUNS || is_critical(victim, v)) return false;
    if (never_preempts(for_job) || is_protected(p, victim)) return false;
    bool lower = v->job.priority < f->job.priority;
    bool equal = v->job.priority == f->job.priority && r->preemption == KUBE_PREEMPT_POLICY;
    if (!lower && !equal) return false;
    if (for_job->beaten_by == victim->serial) return false;
    if (p->jobs->now - v->since < r->stops.min_run) return false;
    return r->stops.max_stops == 0 || v->preemptions < r->stops.max_stops;
}

Err kube_plan_evict(KubePlan *p, KubeJob *victim, KubeJob *for_job) {
    if (victim->evicted) return ERR_OK;
    for (uint32_t i = 0; i < victim->n; i++) {
        KubeMember *m = &victim->members[i];
        if (!m->bound || kube_pod_info(m->pod)->terminating) continue;
        TRY(kube_plan_add(
            p,
            (KubeStep){.kind = KUBE_STEP_EVICT, .job = victim, .member = m, .for_job = for_job}));
    }
    victim->evicted = true;
    victim->beaten_by = for_job->serial;
    for_job->waits_for_room = true;
    for_job->room_until = p->jobs->now + room_patience;
    kube_plan_tell(p, (KubeNote){KUBE_NOTE_EVICTED, victim, for_job, NULL, NULL});
    return ERR_OK;
}

static KubeJob *job_at(const KubePlan *p, const ClusterView *v, uint32_t slot) {
    return slot < v->setup->n_slots ? p->jobs->at[slot] : NULL;
}

static bool starts_on(const ClusterAction *a, const ClusterTask *t) {
    for (uint32_t i = 0; i < a->n_slices; i++)
        for (uint32_t k = 0; k < t->n_slices; k++)
            if (a->slices[i].server == t->slices[k].server) return true;
    return false;
}

// The start that this preemption makes room for.
static KubeJob *gains(const KubePlan *p, const ClusterView *v, const ClusterAction *a, uint32_t n,
                      uint32_t victim) {
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].verb != CLUSTER_START || a[i].task == victim) continue;
        KubeJob *j = job_at(p, v, a[i].task);
        if (j != NULL && starts_on(&a[i], &v->tasks[victim])) return j;
    }
    return NULL;
}

// A policy's preemptions: of a job on whose servers another one of the plan starts.
static Err apply_preemptions(KubePlan *p, const ClusterView *v, const ClusterAction *a,
                             uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].verb != CLUSTER_PREEMPT) continue;
        KubeJob *victim = job_at(p, v, a[i].task);
        KubeJob *by = victim != NULL ? gains(p, v, a, n, a[i].task) : NULL;
        if (victim == NULL || victim->evicted) continue;
        if (by != NULL && p->rules->preemption == KUBE_PREEMPT_POLICY &&
            kube_plan_may_evict(p, victim, by)) {
            TRY(kube_plan_evict(p, victim, by));
            continue;
        }
        kube_plan_tell(p, (KubeNote){KUBE_NOTE_NOT_EVICTED, victim, by, NULL,
                                     by == NULL ? "nothing starts in its place"
                                                : "priority, minimum run or settings forbid it"});
    }
    return ERR_OK;
}

static KubeStep share_of(KubeJob *j, KubeMember *m, const ClusterSlice *s, const ClusterSlice *has);

// What its pods on a server request together.
static ClusterSlice requested_on(const KubePlan *p, const KubeJob *j, uint32_t server) {
    ClusterSlice has = {.server = server};
    for (uint32_t i = 0; i < j->n; i++) {
        const KubePodInfo *info = kube_pod_info(j->members[i].pod);
        if (kube_state_assumed(p->state, j->members[i].pod) != p->nodes[server]) continue;
        has.cores_milli += kube_amount(info->requests.of[KUBE_CPU]);
        has.memory_mib += kube_mib(info->requests.of[KUBE_MEMORY]);
    }
    return has;
}

// The amounts of a start are set when its pods run: they are bound with what they request.
static void note_amounts(KubePlan *p, KubeJob *j, const ClusterAction *a) {
    if (!j->fungible || !p->rules->resize) return;
    for (uint32_t k = 0; k < a->n_slices; k++) {
        ClusterSlice has = requested_on(p, j, a->slices[k].server);
        for (uint32_t i = 0; i < j->n; i++) {
            KubeMember *m = &j->members[i];
            if (kube_state_assumed(p->state, m->pod) != p->nodes[a->slices[k].server]) continue;
            KubeStep to = share_of(j, m, &a->slices[k], &has);
            m->want_cores = to.cores_milli;
            m->want_bytes = to.bytes;
        }
    }
}

static Err apply_start(KubePlan *p, const ClusterView *v, const ClusterAction *a) {
    KubeJob    *j = job_at(p, v, a->task);
    KubeVerdict why = {.reason = FIT_OK};
    bool        started = false, moved = false;
    if (j == NULL || j->phase != KUBE_JOB_READY) return ERR_OK;
    for (uint32_t i = 0; i < a->n_slices; i++)
        if (a->slices[i].server >= p->n_nodes) return ERR_OK;
    TRY(kube_plan_start(p, j, a->slices, a->n_slices, &started, &moved, &why));
    if (started) {
        if (!moved) note_amounts(p, j, a);
        kube_plan_tell(
            p, (KubeNote){moved ? KUBE_NOTE_MOVED : KUBE_NOTE_STARTED, j, NULL, NULL, NULL});
        return ERR_OK;
    }
    if (j->waits_for_room) return ERR_OK;
    kube_jobs_refused(p->jobs, j, p->version);
    kube_plan_tell(p, (KubeNote){KUBE_NOTE_REFUSED, j, NULL, &why, NULL});
    return ERR_OK;
}

static int64_t clamp_to(double x, double low, double high) {
    if (high > 0 && x > high) x = high;
    if (x < low) x = low;
    return (int64_t)x;
}

enum { CORES_STEP = 100, MEMORY_STEP = 64 << 20 };

// A pod's part of what its slice is to have, within the user's bounds, in steps.
static KubeStep share_of(KubeJob *j, KubeMember *m, const ClusterSlice *s,
                         const ClusterSlice *has) {
    const KubePodInfo *i = kube_pod_info(m->pod);
    double cores = (double)i->requests.of[KUBE_CPU], bytes = (double)i->requests.of[KUBE_MEMORY];
    if (has->cores_milli > 0) cores = cores / has->cores_milli * s->cores_milli;
    if (has->memory_mib > 0) bytes = bytes / has->memory_mib * s->memory_mib;
    KubeStep to = {.kind = KUBE_STEP_RESIZE, .job = j, .member = m};
    to.cores_milli = clamp_to(cores, i->cores_min * 1e3, i->cores_max * 1e3);
    to.bytes = clamp_to(bytes, i->memory_min, i->memory_max);
    if (to.cores_milli > CORES_STEP) to.cores_milli -= to.cores_milli % CORES_STEP;
    if (to.bytes > MEMORY_STEP) to.bytes -= to.bytes % MEMORY_STEP;
    if ((double)to.cores_milli < i->cores_min * 1e3) to.cores_milli = (int64_t)(i->cores_min * 1e3);
    if ((double)to.bytes < i->memory_min) to.bytes = (int64_t)i->memory_min;
    if (i->cores_max <= 0) to.cores_milli = i->requests.of[KUBE_CPU];  // no bounds: as requested
    if (i->memory_max <= 0) to.bytes = i->requests.of[KUBE_MEMORY];
    return to;
}

static bool differs(const KubePodInfo *i, const KubeStep *to) {
    int64_t cores = llabs(to->cores_milli - i->requests.of[KUBE_CPU]);
    int64_t bytes = llabs(to->bytes - i->requests.of[KUBE_MEMORY]);
    return cores >= CORES_STEP || bytes >= MEMORY_STEP;
}

// What a pod gains must be free on its node now: what others give back counts when it is confirmed.
static bool has_room(const KubePlan *p, const KubeMember *m, const KubeStep *to) {
    const KubeNodeInfo *n = kube_node_info(p->nodes[m->server]);
    const KubeAmounts  *r = &kube_pod_info(m->pod)->requests;
    int64_t             cores = to->cores_milli - r->of[KUBE_CPU];
    int64_t             bytes = to->bytes - r->of[KUBE_MEMORY];
    return (cores <= 0 || n->used.of[KUBE_CPU] + cores <= n->allocatable.of[KUBE_CPU]) &&
           (bytes <= 0 || n->used.of[KUBE_MEMORY] + bytes <= n->allocatable.of[KUBE_MEMORY]);
}

static Err apply_resize(KubePlan *p, const ClusterView *v, const ClusterAction *a) {
    KubeJob *j = job_at(p, v, a->task);
    bool     any = false;
    if (j == NULL || !j->fungible || j->phase != KUBE_JOB_RUNS || j->evicted) return ERR_OK;
    if (!p->rules->resize || p->rules->act != KUBE_ACT_ALL) return ERR_OK;
    if (p->jobs->now - j->resized_at < p->rules->resize_least) return ERR_OK;
    const ClusterTask *t = &v->tasks[a->task];
    for (uint32_t k = 0; k < a->n_slices && k < t->n_slices; k++)
        for (uint32_t i = 0; i < j->n; i++) {
            KubeMember        *m = &j->members[i];
            const KubePodInfo *info = kube_pod_info(m->pod);
            if (!m->chosen || m->server != a->slices[k].server || info->terminating) continue;
            if (info->phase != POD_RUNNING || info->refused != NULL) continue;
            KubeStep to = share_of(j, m, &a->slices[k], &t->slices[k]);
            if (!differs(info, &to) || !has_room(p, m, &to)) continue;
            TRY(kube_plan_add(p, to));
            any = true;
        }
    if (any) j->resized_at = p->jobs->now;
    if (any) kube_plan_tell(p, (KubeNote){KUBE_NOTE_RESIZED, j, NULL, NULL, NULL});
    return ERR_OK;
}

static Err set_wanted(KubePlan *p, KubeJob *j) {
    bool any = false;
    for (uint32_t i = 0; i < j->n; i++) {
        KubeMember        *m = &j->members[i];
        const KubePodInfo *info = kube_pod_info(m->pod);
        if (m->want_cores == 0 || !m->bound || info->phase != POD_RUNNING) continue;
        KubeStep to = {.kind = KUBE_STEP_RESIZE,
                       .job = j,
                       .member = m,
                       .cores_milli = m->want_cores,
                       .bytes = m->want_bytes};
        m->want_cores = m->want_bytes = 0;
        if (info->terminating || info->refused != NULL || !differs(info, &to)) continue;
        if (m->server == CLUSTER_NONE || !has_room(p, m, &to)) continue;
        TRY(kube_plan_add(p, to));
        any = true;
    }
    if (any) j->resized_at = p->jobs->now;
    if (any) kube_plan_tell(p, (KubeNote){KUBE_NOTE_RESIZED, j, NULL, NULL, NULL});
    return ERR_OK;
}

Err kube_plan_wanted(KubePlan *p) {
    if (!p->rules->resize || p->rules->act != KUBE_ACT_ALL) return ERR_OK;
    for (uint32_t i = 0; i < p->jobs->n_slots; i++) {
        KubeJob *j = p->jobs->at[i];
        if (j != NULL && j->fungible && j->phase == KUBE_JOB_RUNS && !j->evicted)
            TRY(set_wanted(p, j));
    }
    return ERR_OK;
}

Err kube_plan_apply(KubePlan *p, const ClusterView *v, const ClusterAction *a, uint32_t n) {
    TRY(apply_preemptions(p, v, a, n));
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].verb == CLUSTER_START) TRY(apply_start(p, v, &a[i]));
        if (a[i].verb == CLUSTER_RESIZE) TRY(apply_resize(p, v, &a[i]));
    }
    return ERR_OK;
}

static bool is_own(const KubePlan *p, const KubeJob *j, bool reserved) {
    if (reserved) return j->phase == KUBE_JOB_READY && j->waits_for_room;
    if (p->jobs->now < j->retry_at || j->waits_for_room) return false;
    if (j->phase == KUBE_JOB_READY) return j->own || p->all_own;
    return j->phase == KUBE_JOB_RUNS && j->n_free > 0 && !j->evicted;
}

static int by_age(const void *a, const void *b) {
    const KubeJob *x = *(KubeJob *const *)a, *y = *(KubeJob *const *)b;
    if (x->priority_now != y->priority_now) return x->priority_now > y->priority_now ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static Err start_own(KubePlan *p, KubeJob *j) {
    KubeVerdict why = {.reason = FIT_OK};
    bool        started = false, moved = false, room = j->waits_for_room;
    if (j->phase == KUBE_JOB_RUNS)
        for (uint32_t i = 0; i < j->n; i++) j->members[i].chosen = j->members[i].free;
    TRY(kube_plan_start(p, j, NULL, 0, &started, &moved, &why));
    if (started) {
        j->waits_for_room = false;
        kube_plan_tell(p,
                       (KubeNote){KUBE_NOTE_OWN, j, NULL, NULL,
                                  room ? "room was made for it" : "the engine places it itself"});
        return ERR_OK;
    }
    if (room && p->jobs->now > j->room_until) j->waits_for_room = room = false;
    if (room) return ERR_OK;
    kube_jobs_refused(p->jobs, j, p->version);
    kube_plan_tell(p, (KubeNote){KUBE_NOTE_REFUSED, j, NULL, &why, NULL});
    return ERR_OK;
}

Err kube_plan_own(KubePlan *p, bool reserved, uint32_t most) {
    KubeJobs *x = p->jobs;
    KubeJob **order = malloc((x->n + 1) * sizeof(KubeJob *));
    uint32_t  n = 0;
    Err       e = ERR_OK;
    if (order == NULL) return err_set(ERR_LIMIT, "no memory for a plan");
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->at[i] != NULL && is_own(p, x->at[i], reserved)) {
            x->at[i]->priority_now = x->tasks[i].job.priority;
            order[n++] = x->at[i];
        }
    qsort(order, n, sizeof(KubeJob *), by_age);  // NOLINT(bugprone-sizeof-expression)
    for (uint32_t i = 0; i < n && i < most && e == ERR_OK; i++) e = start_own(p, order[i]);
    free(order);
    return e;
}
