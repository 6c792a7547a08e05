// What operators read on a pod: why it waits, in its PodScheduled condition, and few events. A
// condition is written only when its text changed, and all of them at a bounded rate.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/json.h"
#include "kube/cluster_kube_int.h"

enum { MESSAGE = 1024, PODS_OF_GANG = 256, QUEUED = 256 };

static const double tokens_per_s = 20, most_tokens = 40;

static const TimeNs told_least = 5 * CLUSTER_SECOND, wait_least = CLUSTER_SECOND / 2;

static void time_text(TimeNs at, char out[40], bool micro) {
    time_t    s = (time_t)(at / CLUSTER_SECOND);
    struct tm t;
    char      whole[32];
    (void)gmtime_r(&s, &t);
    (void)strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &t);
    if (micro)
        (void)snprintf(out, 40, "%s.%06dZ", whole, (int)(at % CLUSTER_SECOND / 1000));
    else
        (void)snprintf(out, 40, "%sZ", whole);
}

typedef struct Waiting {  // why a job waits
    const char *reason;
    char        text[MESSAGE];
} Waiting;

static void of_incomplete(const KubeJob *j, Waiting *w) {
    w->reason = "GangIncomplete";
    if (j->least == 0)
        (void)snprintf(w->text, sizeof w->text,
                       "gang %s: how many pods start together is not known; annotate it, or create "
                       "its PodGroup",
                       j->name);
    else
        (void)snprintf(w->text, sizeof w->text, "gang %s: %u of %u pods that start together exist",
                       j->name, j->n_free, j->least);
}

static const KubeMember *first_chosen(const KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++)
        if (j->members[i].chosen && !j->members[i].bound) return &j->members[i];
    return NULL;
}

static void of_ready(const ClusterKube *k, KubeJob *j, Waiting *w) {
    const KubeMember *m = first_chosen(j);
    KubeVerdict       most;
    w->reason = "Unschedulable";
    w->text[0] = '\0';
    if (m == NULL) return;
    (void)kube_fit_message(k->state, m->pod, w->text, sizeof w->text, &most);
    j->unfit = most.reason;
    const ClusterTask *t = &k->jobs.tasks[j->slot];
    bool over = k->view.setup.quotas && k->view.open && !tenant_quota_fits(&k->quota, &t->job);
    bool fits = false;
    KubeNode *const *nodes;
    KubeVerdict      why;
    uint32_t         n = kube_state_nodes(k->state, &nodes);
    for (uint32_t i = 0; i < n && !fits; i++)
        fits = kube_fit(k->state, m->pod, nodes[i], NULL, &why);
    if (over) {
        w->reason = "QuotaExceeded";
        (void)snprintf(w->text, sizeof w->text, "tenant %s is at its limit of GPUs",
                       t->job.tenant != CLUSTER_NONE ? k->jobs.tenants[t->job.tenant] : "");
    } else if (j->waits_for_room) {
        w->reason = "Unschedulable";
        (void)snprintf(w->text, sizeof w->text, "pods of lower priority are stopped to make room");
    } else if (fits && !j->gang) {
        w->reason = "WaitingForTurn";
        (void)snprintf(w->text, sizeof w->text, "nodes have room; policy %s lets it wait",
                       k->options.policy->name);
    } else if (fits) {
        (void)snprintf(w->text, sizeof w->text,
                       "gang %s: no room for its %u pods together, or policy %s lets it wait",
                       j->name, j->least, k->options.policy->name);
    }
}

void cluster_kube_waiting(const ClusterKube *k, KubeJob *j, const char **reason, char *text,
                          size_t room) {
    Waiting w = {.reason = ""};
    if (j->phase == KUBE_JOB_INCOMPLETE)
        of_incomplete(j, &w);
    else if (j->phase == KUBE_JOB_READY)
        of_ready(k, j, &w);
    *reason = w.reason;
    (void)snprintf(text, room, "%s", w.text);
}

static char *condition_body(const ClusterKube *k, const KubePodInfo *p, const Waiting *w) {
    char at[40];
    time_text(cluster_kube_now(k), at, false);
    json_t *doc = json_pack("{s:{s:s},s:{s:[{s:s,s:s,s:s,s:s,s:s}]}}", "metadata", "uid", p->uid,
                            "status", "conditions", "type", "PodScheduled", "status", "False",
                            "reason", w->reason, "message", w->text, "lastTransitionTime", at);
    char   *text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    return text;
}

static void tell_pod(ClusterKube *k, const KubeMember *m, const Waiting *w) {
    const KubePodInfo *p = kube_pod_info(m->pod);
    char              *path = NULL;
    if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s/status", p->namespace_name, p->name) < 0)
        return;
    char *body = condition_body(k, p, w);
    if (cluster_kube_write_patch(k, KUBE_WRITE_CONDITION, p, path, body) != ERR_OK)
        cluster_kube_log_error(k, "condition not written");
    k->status_tokens--;
}

static void tell_job(ClusterKube *k, KubeJob *j) {
    Waiting w;
    if (j->phase == KUBE_JOB_INCOMPLETE)
        of_incomplete(j, &w);
    else
        of_ready(k, j, &w);
    uint64_t told = hash_fnv(HASH_FNV_START, w.reason, strlen(w.reason));
    told = hash_fnv(told, w.text, strlen(w.text));
    j->told_at = cluster_kube_now(k);
    j->told_version = kube_state_version(k->state);
    if (w.text[0] == '\0') return;
    for (uint32_t i = 0; i < j->n && i < PODS_OF_GANG; i++) {
        KubeMember *m = &j->members[i];
        if (!m->free || m->bound || m->told == told) continue;
        m->told = told;
        tell_pod(k, m, &w);
    }
    if (k->options.hooks.noted == NULL) return;
}

static bool is_due(const ClusterKube *k, const KubeJob *j, TimeNs now, uint64_t version) {
    if (j == NULL || j->n_free == 0 || j->n == 0) return false;
    if (j->phase == KUBE_JOB_RUNS || (j->phase == KUBE_JOB_INCOMPLETE && !j->gang)) return false;
    if (j->told_at == 0) return now - j->seen_at >= wait_least;
    (void)k;
    return j->told_version != version && now - j->told_at >= told_least;
}

// Pods refer to the state of the last update, so it is made anew first.
void cluster_kube_status(ClusterKube *k) {
    TimeNs now = cluster_kube_now(k);
    k->status_tokens += (double)(now - k->status_at) / 1e9 * tokens_per_s;
    if (k->status_tokens > most_tokens) k->status_tokens = most_tokens;
    k->status_at = now;
    if (k->options.dry_run || k->status_tokens < 1 || k->others.n > QUEUED) return;
    if (kube_jobs_update(&k->jobs, k->state, now) != ERR_OK) {
        cluster_kube_log_error(k, "pods could not be read");
        return;
    }
    uint64_t version = kube_state_version(k->state);
    for (uint32_t i = 0; i < k->jobs.n_slots && k->status_tokens >= 1; i++) {
        uint32_t slot = (k->status_next + i) % k->jobs.n_slots;
        KubeJob *j = k->jobs.at[slot];
        if (!is_due(k, j, now, version)) continue;
        tell_job(k, j);
        k->status_tokens -= 0.2;  // the text costs time, too
        k->status_next = slot + 1;
    }
}

void cluster_kube_event(ClusterKube *k, const KubePodInfo *p, const char *type, const char *reason,
                        const char *action, const char *note) {
    char   at[40], name[300], *path = NULL;
    TimeNs now = cluster_kube_now(k);
    if (k->options.dry_run || k->others.n > QUEUED) return;
    time_text(now, at, true);
    (void)snprintf(name, sizeof name, "%.230s.%llx", p->name, (unsigned long long)now);
    if (asprintf(&path, "/apis/events.k8s.io/v1/namespaces/%s/events", p->namespace_name) < 0)
        return;
    json_t *doc = json_pack(
        "{s:s,s:s,s:{s:s,s:s},s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:s,s:s}}", "apiVersion",
        "events.k8s.io/v1", "kind", "Event", "metadata", "name", name, "namespace",
        p->namespace_name, "eventTime", at, "reportingController", "cotenant", "reportingInstance",
        k->options.lease.identity != NULL ? k->options.lease.identity : "cotenant", "type", type,
        "reason", reason, "action", action, "note", note, "regarding", "apiVersion", "v1", "kind",
        "Pod", "name", p->name, "namespace", p->namespace_name, "uid", p->uid);
    char *body = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    if (cluster_kube_write_patch(k, KUBE_WRITE_EVENT, p, path, body) != ERR_OK)
        cluster_kube_log_error(k, "event not written");
}
