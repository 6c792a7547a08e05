#include "kube/kube_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/string_map.h"

enum { TENANTS = 4096, NODES_A_LOOK = 4000000 };

static const TimeNs least_backoff = CLUSTER_SECOND, most_backoff = 10 * CLUSTER_SECOND;

static uint64_t hash_of(const char *namespace_name, const char *name, bool gang) {
    uint64_t h = hash_fnv(HASH_FNV_START, namespace_name, strlen(namespace_name) + 1);
    return hash_fnv_add(hash_fnv(h, name, strlen(name)), gang);
}

static Err no_memory(void) {
    return err_set(ERR_LIMIT, "no memory for the pods of this scheduler");
}

static Err resize_tables(KubeJobs *x, uint32_t slots) {
    KubeJob    **at = calloc(slots, sizeof(KubeJob *));
    ClusterTask *tasks = calloc(slots, sizeof *tasks);
    uint32_t    *numbers = calloc((size_t)3 * slots, sizeof *numbers);
    if (at == NULL || tasks == NULL || numbers == NULL) {
        free(at);
        free(tasks);
        free(numbers);
        return no_memory();
    }
    for (uint32_t i = 0; i < x->n_slots; i++) {
        at[i] = x->at[i];
        tasks[i] = x->tasks[i];
    }
    free(x->at);
    free(x->tasks);
    free(x->buckets);
    x->at = at;
    x->tasks = tasks;
    x->buckets = numbers;
    x->waiting = numbers + slots;
    x->running = x->waiting + slots;
    x->n_slots = slots;
    for (uint32_t i = 0; i < slots; i++) x->buckets[i] = CLUSTER_NONE;
    for (uint32_t i = 0; i < slots; i++) {
        if (at[i] == NULL) continue;
        uint64_t h = hash_of(at[i]->namespace_name, at[i]->name, at[i]->gang) % slots;
        at[i]->next = x->buckets[h];
        x->buckets[h] = i;
    }
    return ERR_OK;
}

Err kube_jobs_init(KubeJobs *x, uint32_t slots) {
    *x = (KubeJobs){.n_slots = 0};
    return resize_tables(x, slots > 0 ? slots : 256);
}

static void free_job(KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++) {
        free(j->members[i].name);
        free(j->members[i].uid);
    }
    free(j->members);
    free(j->slices);
    free(j->namespace_name);
    free(j->name);
    free(j);
}

void kube_jobs_finish(KubeJobs *x) {
    kube_servers_clear(x);
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->at[i] != NULL) free_job(x->at[i]);
    for (uint32_t i = 0; i < x->n_tenants; i++) free(x->tenants[i]);
    free(x->tenants);
    free(x->at);
    free(x->tasks);
    free(x->buckets);
    *x = (KubeJobs){.n_slots = 0};
}

static KubeJob *find_job(const KubeJobs *x, const char *namespace_name, const char *name,
                         bool gang) {
    uint32_t slot = x->buckets[hash_of(namespace_name, name, gang) % x->n_slots];
    for (; slot != CLUSTER_NONE; slot = x->at[slot]->next) {
        KubeJob *j = x->at[slot];
        if (j->gang == gang && strcmp(j->name, name) == 0 &&
            strcmp(j->namespace_name, namespace_name) == 0)
            return j;
    }
    return NULL;
}

// The tenant's index; CLUSTER_NONE beyond the limit.
static Err tenant_of(KubeJobs *x, const char *name, uint32_t *out) {
    for (uint32_t i = 0; i < x->n_tenants; i++)
        if (strcmp(x->tenants[i], name) == 0) {
            *out = i;
            return ERR_OK;
        }
    *out = CLUSTER_NONE;
    if (x->n_tenants == TENANTS) return ERR_OK;
    if (x->n_tenants == x->tenants_room) {
        uint32_t room = x->tenants_room > 0 ? 2 * x->tenants_room : 16;
        char   **more = realloc(x->tenants, room * sizeof *more);
        if (more == NULL) return no_memory();
        x->tenants = more;
        x->tenants_room = room;
    }
    x->tenants[x->n_tenants] = strdup(name);
    if (x->tenants[x->n_tenants] == NULL) return no_memory();
    *out = x->n_tenants++;
    return ERR_OK;
}

static uint32_t free_slot(const KubeJobs *x) {
    uint32_t i = 0;
    while (i < x->n_slots && x->at[i] != NULL) i++;
    return i;
}

static Err add_job(KubeJobs *x, const KubePodInfo *p, const char *name, KubeJob **out) {
    if (x->n + 1 > x->n_slots / 4 * 3) TRY(resize_tables(x, 2 * x->n_slots));
    KubeJob *j = calloc(1, sizeof *j);
    if (j == NULL) return no_memory();
    j->namespace_name = strdup(p->namespace_name);
    j->name = strdup(name);
    if (j->namespace_name == NULL || j->name == NULL) {
        free_job(j);
        return no_memory();
    }
    j->gang = p->group != NULL;
    j->first = p->created > 0 ? p->created : x->now;
    j->named = CLUSTER_NONE;
    j->slot = free_slot(x);
    j->serial = ++x->serials;
    j->seen_at = x->now;
    uint32_t *bucket = &x->buckets[hash_of(j->namespace_name, name, j->gang) % x->n_slots];
    j->next = *bucket;
    *bucket = j->slot;
    x->at[j->slot] = j;
    x->n++;
    ClusterTask *t = &x->tasks[j->slot];
    *t = (ClusterTask){.left = CLUSTER_UNKNOWN, .rate = 1, .mark = x->now};
    t->job = (ClusterJob){.submit = j->first, .class = CLUSTER_NONE, .priority = p->priority};
    *out = j;
    return tenant_of(x, p->tenant, &t->job.tenant);
}

static void unlink_job(KubeJobs *x, KubeJob *j) {
    uint32_t *at = &x->buckets[hash_of(j->namespace_name, j->name, j->gang) % x->n_slots];
    while (*at != j->slot) at = &x->at[*at]->next;
    *at = j->next;
}

static void remove_job(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    if (t->state == CLUSTER_RUNNING || j->phase == KUBE_JOB_RUNS) x->reason |= CLUSTER_JOB_ENDED;
    if (x->ended != NULL) x->ended(x->self, j, t);
    unlink_job(x, j);
    t->state = CLUSTER_GONE;
    t->n_slices = 0;
    x->at[j->slot] = NULL;
    x->n--;
    free_job(j);
}

// Pods arrive in the same order each time, so the search begins behind the one found last.
static KubeMember *find_member(KubeJob *j, const char *name, uint32_t update) {
    uint32_t from = 0;
    for (uint32_t i = j->n; i-- > 0 && from == 0;)
        if (j->members[i].seen == update) from = i + 1;
    for (uint32_t i = 0; i < j->n; i++) {
        KubeMember *m = &j->members[(from + i) % j->n];
        if (strcmp(m->name, name) == 0) return m;
    }
    return NULL;
}

static Err add_member(KubeJob *j, const KubePodInfo *p, KubeMember **out) {
    if (j->n == j->room) {
        uint32_t    room = j->room > 0 ? 2 * j->room : 1;
        KubeMember *more = realloc(j->members, room * sizeof *more);
        if (more == NULL) return no_memory();
        j->members = more;
        j->room = room;
    }
    KubeMember *m = &j->members[j->n];
    *m = (KubeMember){.name = strdup(p->name), .uid = strdup(p->uid), .server = CLUSTER_NONE};
    if (m->name == NULL || m->uid == NULL) {
        free(m->name);
        free(m->uid);
        return no_memory();
    }
    m->asked = p->requests;
    j->n++;
    *out = m;
    return ERR_OK;
}

// A pod of the same name and another uid is another pod.
static Err renew_member(KubeMember *m, const KubePodInfo *p) {
    char *uid = strdup(p->uid);
    if (uid == NULL) return no_memory();
    free(m->uid);
    *m = (KubeMember){.name = m->name, .uid = uid, .server = CLUSTER_NONE, .asked = p->requests};
    return ERR_OK;
}

static Err take_pod(KubeJobs *x, KubePod *pod) {
    const KubePodInfo *p = kube_pod_info(pod);
    const char        *name = p->group != NULL ? p->group : p->name;
    KubeJob           *j = find_job(x, p->namespace_name, name, p->group != NULL);
    KubeMember        *m = NULL;
    bool               ended = p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
    if (ended) {
        m = j != NULL ? find_member(j, p->name, x->updates) : NULL;
        if (m != NULL && strcmp(m->uid, p->uid) == 0 && p->phase == POD_SUCCEEDED) j->succeeded++;
        return ERR_OK;
    }
    if (j == NULL) TRY(add_job(x, p, name, &j));
    m = find_member(j, p->name, x->updates);
    if (m == NULL) TRY(add_member(j, p, &m));
    if (strcmp(m->uid, p->uid) != 0) TRY(renew_member(m, p));
    m->pod = pod;
    m->seen = x->updates;
    return ERR_OK;
}

void kube_jobs_pod_ended(KubeJobs *x, const char *namespace_name, const char *name,
                         const char *uid) {
    for (uint32_t i = 0; i < x->n_slots; i++) {
        KubeJob *j = x->at[i];
        if (j == NULL || strcmp(j->namespace_name, namespace_name) != 0) continue;
        for (uint32_t k = 0; k < j->n; k++)
            if (strcmp(j->members[k].name, name) == 0 && strcmp(j->members[k].uid, uid) == 0) {
                j->succeeded++;
                return;
            }
    }
}

static void drop_unseen(KubeJob *j, uint32_t update) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->n; i++) {
        KubeMember *m = &j->members[i];
        if (m->seen == update) {
            j->members[kept++] = *m;
            continue;
        }
        free(m->name);
        free(m->uid);
    }
    j->n = kept;
}

static Err take_pods(KubeJobs *x, const KubeState *s) {
    KubePod *const *pods;
    uint32_t        n = kube_state_pods(s, &pods);
    for (uint32_t i = 0; i < n; i++)
        if (kube_pod_info(pods[i])->ours) TRY(take_pod(x, pods[i]));
    return ERR_OK;
}

// Bits of sets are nodes in their order: another order makes them void.
static void index_nodes(KubeJobs *x, const KubeState *s, Arena *scratch, StringMap *out) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    uint64_t         order = HASH_FNV_START;
    string_map_init(out, scratch);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = kube_node_info(nodes[i])->name;
        string_map_put(out, name, i);
        order = hash_fnv(order, name, strlen(name) + 1);
    }
    if (order != x->bits.order) kube_servers_clear(x);
    x->bits.order = order;
}

static void read_member(const KubeState *s, const StringMap *servers, KubeMember *m) {
    const KubePodInfo *p = kube_pod_info(m->pod);
    const KubeNode    *assumed = p->node == NULL ? kube_state_assumed(s, m->pod) : NULL;
    const char        *node = assumed != NULL ? kube_node_info(assumed)->name : p->node;
    uint32_t           server = node != NULL ? string_map_get(servers, node) : STRING_MAP_NONE;
    if (server == STRING_MAP_NONE) server = CLUSTER_NONE;
    if (m->server != server) m->mask = 0;
    m->server = server;
    m->bound = node != NULL;
    m->free = !m->bound && !p->gated && !p->terminating && p->unsupported == NULL &&
              p->phase == POD_PENDING;
}

static void read_job(KubeJobs *x, const KubeState *s, const StringMap *servers, KubeJob *j) {
    const KubePodInfo *p = j->n > 0 ? kube_pod_info(j->members[0].pod) : NULL;
    j->n_bound = j->n_free = 0;
    j->fungible = j->n > 0;
    if (!j->gang) j->least = 1;
    for (uint32_t i = 0; i < j->n; i++) {
        KubeMember *m = &j->members[i];
        read_member(s, servers, m);
        p = kube_pod_info(m->pod);
        j->n_bound += m->bound;
        j->n_free += m->free;
        j->fungible = j->fungible && p->fungible;
        if (j->gang) j->least = kube_state_gang(s, m->pod).min;
    }
    if (p != NULL) x->tasks[j->slot].job.priority = p->priority;
    kube_gang_route(j);
}

// A gang whose pods are being made anew keeps its name, what it held and its stops for a while.
static const TimeNs kept_empty = 600 * CLUSTER_SECOND;

static bool is_over(const KubeJobs *x, KubeJob *j) {
    if (j->n > 0) j->empty_from = 0;
    if (j->n > 0) return false;
    if (!j->gang || j->succeeded > 0) return true;
    if (j->empty_from == 0) j->empty_from = x->now;
    return x->now - j->empty_from > kept_empty;
}

// Runs of all tasks are accounted up to now at the rate that they had.
static void account(KubeJobs *x) {
    for (uint32_t i = 0; i < x->n_slots; i++) {
        ClusterTask *t = &x->tasks[i];
        if (x->at[i] == NULL || t->state != CLUSTER_RUNNING || x->now <= t->mark) continue;
        TimeNs ns = x->now - t->mark, did = cluster_progress(t, ns);
        TimeNs worked = did > t->owed ? did - t->owed : 0;
        x->at[i]->work_s += (double)worked / 1e9;
        t->owed = t->owed > ns ? t->owed - ns : 0;
        if (t->left >= 0) t->left = t->left > did ? t->left - did : 0;
        t->held += ns;
        t->mark = x->now;
    }
}

static int by_entry(const void *a, const void *b, void *tasks) {
    const ClusterTask *all = tasks;
    uint64_t           x = all[*(const uint32_t *)a].entry, y = all[*(const uint32_t *)b].entry;
    return x < y ? -1 : x > y;
}

static void list_visible(KubeJobs *x) {
    x->n_waiting = x->n_running = x->n_ready = x->n_incomplete = 0;
    for (uint32_t i = 0; i < x->n_slots; i++) {
        if (x->at[i] == NULL) continue;
        x->n_ready += x->at[i]->phase == KUBE_JOB_READY;
        x->n_incomplete += x->at[i]->phase == KUBE_JOB_INCOMPLETE;
        if (x->tasks[i].state == CLUSTER_WAITING) x->waiting[x->n_waiting++] = i;
        if (x->tasks[i].state == CLUSTER_RUNNING) x->running[x->n_running++] = i;
    }
    qsort_r(x->waiting, x->n_waiting, sizeof *x->waiting, by_entry, x->tasks);
    qsort_r(x->running, x->n_running, sizeof *x->running, by_entry, x->tasks);
}

static int by_age(const void *a, const void *b, void *jobs) {
    KubeJob *const *all = jobs;
    const KubeJob  *x = all[*(const uint32_t *)a], *y = all[*(const uint32_t *)b];
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    int names = strcmp(x->namespace_name, y->namespace_name);
    return names != 0 ? names : strcmp(x->name, y->name);
}

// The oldest first, so that entry numbers of jobs seen together follow their submission.
static Err settle_all(KubeJobs *x, Arena *scratch) {
    uint32_t *order = arena_try_new(scratch, uint32_t, x->n + 1), n = 0;
    if (order == NULL) return no_memory();
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->at[i] != NULL) order[n++] = i;
    qsort_r(order, n, sizeof *order, by_age, x->at);
    for (uint32_t i = 0; i < n; i++) TRY(kube_gang_settle(x, x->at[order[i]]));
    return ERR_OK;
}

static Err update(KubeJobs *x, const KubeState *s, Arena *scratch) {
    StringMap servers;
    index_nodes(x, s, scratch, &servers);
    account(x);
    TRY(take_pods(x, s));
    for (uint32_t i = 0; i < x->n_slots; i++) {
        KubeJob *j = x->at[i];
        if (j == NULL) continue;
        drop_unseen(j, x->updates);
        read_job(x, s, &servers, j);
        if (is_over(x, j)) remove_job(x, j);
    }
    TRY(kube_gang_masks(x, s, scratch));
    TRY(settle_all(x, scratch));
    list_visible(x);
    return ERR_OK;
}

Err kube_jobs_update(KubeJobs *x, const KubeState *s, TimeNs now) {
    Arena scratch;
    TRY(arena_init(&scratch, (size_t)1 << 30));
    x->updates++;
    x->now = now;
    x->state = s;
    x->find_left = NODES_A_LOOK;
    x->find_more = false;
    Err e = update(x, s, &scratch);
    arena_finish(&scratch);
    return e;
}

void kube_jobs_refused(KubeJobs *x, KubeJob *j, uint64_t version) {
    j->backoff = j->backoff == 0 ? least_backoff : 2 * j->backoff;
    if (j->backoff > most_backoff) j->backoff = most_backoff;
    j->retry_at = x->now + j->backoff;
    j->tried_at = version;
    j->refusals++;
}

void kube_jobs_started(KubeJobs *x, KubeJob *j) {
    (void)x;
    j->backoff = j->retry_at = 0;
    j->tried_at = 0;
}
