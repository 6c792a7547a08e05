#include "cluster/trace/pod.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/trace_window.h"

typedef struct Suffix {
    const char *text;
    double      factor;
} Suffix;

static const Suffix suffixes[] = {
    {"", 1},
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"E", 1e18},
    {"Ki", 1024.0},
    {"Mi", 1048576.0},
    {"Gi", 1073741824.0},
    {"Ti", 1099511627776.0},
    {"Pi", 1125899906842624.0},
    {"Ei", 1152921504606846976.0},
};

// "e3", "E-3": a power of ten; 0: it is none.
static double exponent(const char *text) {
    char *end = NULL;
    if ((text[0] != 'e' && text[0] != 'E') || strpbrk(text + 1, "0123456789") == NULL) return 0;
    if (strlen(text) > 4) return 0;
    long n = strtol(text + 1, &end, 10);
    return *end == '\0' ? pow(10, (double)n) : 0;
}

Err quantity_read(const char *text, int64_t unit, int64_t most, int64_t *out) {
    const int64_t micro = 1000000;
    char          number[32];
    int64_t       v = 0;
    size_t        n = strspn(text, "0123456789.");
    double        factor = exponent(text + n);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(text + n, suffixes[i].text) == 0) factor = suffixes[i].factor;
    if (n == 0 || n >= sizeof number || !(factor > 0))
        return err_set(ERR_PARSE, "'%.40s' is no quantity; write 2, 500m or 16Gi", text);
    memcpy(number, text, n);
    number[n] = '\0';
    DecimalError f = decimal_read(number, micro, INT64_MAX / 2, &v);
    if (f != DECIMAL_OK) return err_set(ERR_PARSE, "'%.40s' %s", text, decimal_error_text(f));
    double whole = ceil((double)v / (double)micro * factor * (double)unit - 1e-9);
    if (!(whole <= (double)most)) return err_set(ERR_PARSE, "'%.40s' is too large", text);
    *out = (int64_t)whole;
    return ERR_OK;
}

const char *json_path_text(const json_t *doc, const char *const *path) {
    for (; doc != NULL && *path != NULL; path++) doc = json_object_get(doc, *path);
    return json_string_value(doc);
}

#define TEXT(doc, ...) json_path_text(doc, (const char *const[]){__VA_ARGS__, NULL})

typedef struct Needs {  // of containers; thousandths of cores, bytes
    int64_t gpus, cores, memory;
} Needs;

static Needs plus(Needs a, Needs b) {
    return (Needs){a.gpus + b.gpus, a.cores + b.cores, a.memory + b.memory};
}

static Needs most_of(Needs a, Needs b) {
    return (Needs){a.gpus > b.gpus ? a.gpus : b.gpus, a.cores > b.cores ? a.cores : b.cores,
                   a.memory > b.memory ? a.memory : b.memory};
}

// What is requested; without a request, its limit.
static Err amount(const json_t *resources, const char *key, int64_t unit, int64_t most,
                  int64_t *out) {
    static const char *const lists[] = {"requests", "limits"};
    json_t                  *v = NULL;
    char                     number[32];
    *out = 0;
    for (int i = 0; i < 2 && v == NULL; i++)
        v = json_object_get(json_object_get(resources, lists[i]), key);
    if (v == NULL) return ERR_OK;
    if (json_is_integer(v)) (void)snprintf(number, sizeof number, "%lld", json_integer_value(v));
    const char *text = json_is_integer(v) ? number : json_string_value(v);
    if (text == NULL) return err_set(ERR_PARSE, "resources: %s: is no quantity; write 2Gi", key);
    Err e = quantity_read(text, unit, most, out);
    return e == ERR_OK ? e : err_add(e, "resources: %s", key);
}

static const char *const gpu_resources[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915",
                                            "gpu.intel.com/xe", NULL};

// Parts of GPUs (nvidia.com/mig-1g.5gb, nvidia.com/gpu.shared, aliyun.com/gpu-mem, ...): their size
// is not stated.
static const char *part_of_gpu(const json_t *resources) {
    static const char *const lists[] = {"requests", "limits"};
    for (int i = 0; i < 2; i++) {
        const char *key = NULL;
        json_t     *v = NULL;
        json_object_foreach(json_object_get(resources, lists[i]), key, v) {
            bool known = strchr(key, '/') == NULL;
            for (int k = 0; gpu_resources[k] != NULL && !known; k++)
                known = strcmp(key, gpu_resources[k]) == 0;
            if (!known && (strstr(key, "gpu") != NULL || strstr(key, "/mig-") != NULL)) return key;
        }
    }
    return NULL;
}

static Err read_needs(const json_t *container, Needs *out, const char **part) {
    const json_t *resources = json_object_get(container, "resources");
    for (int i = 0; gpu_resources[i] != NULL; i++) {
        int64_t gpus = 0;
        TRY(amount(resources, gpu_resources[i], 1, JOB_GPUS_MAX, &gpus));
        out->gpus += gpus;
    }
    if (*part == NULL) *part = part_of_gpu(resources);
    TRY(amount(resources, "cpu", 1000, INT32_MAX, &out->cores));
    return amount(resources, "memory", 1, (int64_t)INT32_MAX << 20, &out->memory);
}

static Err container_place(Err e, const char *list, size_t i, const json_t *c) {
    const char *name = TEXT(c, "name");
    return name != NULL ? err_add(e, "spec.%s[%zu] (%.40s)", list, i, name)
                        : err_add(e, "spec.%s[%zu]", list, i);
}

enum { CONTAINERS_MAX = 1000 };

// Containers run together; initial ones before them, one after the other, unless they always
// restart: then they stay.
static Err read_demand(const json_t *spec, Needs *out, const char **part) {
    static const char *const lists[] = {"initContainers", "containers"};
    Needs                    stay = {0}, peak = {0};
    for (int k = 0; k < 2; k++) {
        const json_t *list = json_object_get(spec, lists[k]);
        if (json_array_size(list) > CONTAINERS_MAX)
            return err_set(ERR_LIMIT, "spec.%s: more than %d", lists[k], CONTAINERS_MAX);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *c = json_array_get(list, i);
            const char   *restart = TEXT(c, "restartPolicy");
            bool          stays = k == 1 || (restart != NULL && strcmp(restart, "Always") == 0);
            Needs         needs = {0};
            Err           e = read_needs(c, &needs, part);
            if (e != ERR_OK) return container_place(e, lists[k], i, c);
            peak = most_of(peak, plus(stay, needs));
            if (stays) stay = plus(stay, needs);
        }
    }
    *out = most_of(peak, stay);
    return ERR_OK;
}

static Err take_demand(const json_t *spec, Pod *p, const char **part) {
    Needs needs = {0}, overhead = {0};
    TRY(read_demand(spec, &needs, part));
    json_t *wrapped =
        json_pack("{s:{s:O?}}", "resources", "requests", json_object_get(spec, "overhead"));
    Err e = read_needs(wrapped, &overhead, part);
    json_decref(wrapped);
    if (e != ERR_OK) return err_add(e, "spec.overhead");
    needs = plus(needs, overhead);
    if (needs.gpus > JOB_GPUS_MAX || needs.cores > INT32_MAX ||
        needs.memory > (int64_t)INT32_MAX << 20)
        return err_set(ERR_LIMIT, "spec: its containers request too much together");
    p->gpus = (uint32_t)needs.gpus;
    p->cores_milli = (uint32_t)needs.cores;
    p->memory_mib = (uint32_t)((needs.memory + (1 << 20) - 1) >> 20);
    return ERR_OK;
}

static Err take_time(const char *text, const char *what, TimeNs *out) {
    if (text == NULL) return ERR_OK;
    if (instant_read(text, out)) return ERR_OK;
    return err_set(ERR_PARSE, "%s: '%.40s' is no time; write it as 2024-03-01T08:30:00Z", what,
                   text);
}

// First start and last end of a list of container statuses.
static Err take_statuses(const json_t *status, const char *list, Pod *p, bool *restarted) {
    const json_t *all = json_object_get(status, list);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        TimeNs        from = JOB_UNKNOWN, to = JOB_UNKNOWN;
        TRY(take_time(TEXT(c, "state", "terminated", "startedAt"), "startedAt", &from));
        TRY(take_time(TEXT(c, "state", "terminated", "finishedAt"), "finishedAt", &to));
        if (json_integer_value(json_object_get(c, "restartCount")) > 0) *restarted = true;
        if (from > 0 && (p->began == JOB_UNKNOWN || from < p->began)) p->began = from;
        if (from > 0 && to > p->ended) p->ended = to;
    }
    return ERR_OK;
}

// Time of a condition with this type and status, if any.
static Err take_condition(const json_t *status, const char *type, const char *is, TimeNs *out) {
    const json_t *all = json_object_get(status, "conditions");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        const char   *t = TEXT(c, "type"), *s = TEXT(c, "status");
        if (t != NULL && s != NULL && strcmp(t, type) == 0 && strcmp(s, is) == 0)
            TRY(take_time(TEXT(c, "lastTransitionTime"), "lastTransitionTime", out));
    }
    return ERR_OK;
}

// A restarted container states its last run only; the pod has held its GPUs since it started.
static Err take_times(const json_t *doc, Pod *p) {
    const json_t *status = json_object_get(doc, "status");
    const char   *phase = TEXT(status, "phase");
    bool          restarted = false;
    TimeNs        start = JOB_UNKNOWN;
    p->live = phase == NULL || (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0);
    TRY(take_time(TEXT(doc, "metadata", "creationTimestamp"), "metadata.creationTimestamp",
                  &p->created));
    TRY(take_statuses(status, "initContainerStatuses", p, &restarted));
    TimeNs init_end = p->ended;
    p->ended = JOB_UNKNOWN;
    TRY(take_statuses(status, "containerStatuses", p, &restarted));
    if (p->ended == JOB_UNKNOWN) p->ended = init_end;
    TRY(take_time(TEXT(status, "startTime"), "status.startTime", &start));
    if (start == JOB_UNKNOWN) TRY(take_condition(status, "PodScheduled", "True", &start));
    if ((restarted || p->began == JOB_UNKNOWN) && start != JOB_UNKNOWN) p->began = start;
    if (p->ended == JOB_UNKNOWN && !p->live && p->began != JOB_UNKNOWN)
        TRY(take_condition(status, "Ready", "False", &p->ended));
    return ERR_OK;
}

static const char *first_of(const json_t *map, const char *const *keys) {
    const char *v = NULL;
    for (; *keys != NULL && v == NULL; keys++) v = json_string_value(json_object_get(map, *keys));
    return v != NULL && v[0] != '\0' ? v : NULL;
}

// Labels and annotations that name the gang of a pod.
static const char *gang_of(const json_t *doc) {
    static const char *const keys[] = {"scheduling.x-k8s.io/pod-group",
                                       "pod-group.scheduling.sigs.k8s.io",
                                       "pod-group.scheduling.sigs.k8s.io/name",
                                       "scheduling.k8s.io/group-name",
                                       "kueue.x-k8s.io/pod-group-name",
                                       "jobset.sigs.k8s.io/jobset-name",
                                       "training.kubeflow.org/job-name",
                                       "volcano.sh/job-name",
                                       "ray.io/cluster",
                                       NULL};
    const json_t            *meta = json_object_get(doc, "metadata");
    const char              *name = first_of(json_object_get(meta, "labels"), keys);
    return name != NULL ? name : first_of(json_object_get(meta, "annotations"), keys);
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

// Owners whose pods run together: Job, PyTorchJob, MPIJob, JobSet, PodGroup, ...
static const json_t *owner_of(const json_t *doc) {
    const json_t *owners = json_object_get(json_object_get(doc, "metadata"), "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *o = json_array_get(owners, i);
        const char   *kind = TEXT(o, "kind");
        if (kind == NULL || TEXT(o, "name") == NULL) continue;
        if (ends_with(kind, "Job") || ends_with(kind, "JobSet") || ends_with(kind, "PodGroup") ||
            strcmp(kind, "RayCluster") == 0)
            return o;
    }
    return NULL;
}

static Err copied(Arena *a, const char *parts[4], const char **out) {
    size_t n = 1;
    for (int i = 0; i < 4; i++) n += parts[i] != NULL ? strlen(parts[i]) + (i > 0) : 0;
    char *to = arena_try(a, n, 1, 1);
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for its names");
    *out = to;
    for (int i = 0; i < 4 && parts[i] != NULL; i++) {
        if (i > 0) *to++ = '/';
        memcpy(to, parts[i], strlen(parts[i]));
        to += strlen(parts[i]);
    }
    return ERR_OK;
}

static Err copy(Arena *a, const char *text, const char **out) {
    if (text == NULL) return ERR_OK;
    return copied(a, (const char *[4]){text}, out);
}

static Err take_group(const json_t *doc, Arena *a, Pod *p) {
    const char   *gang = gang_of(doc);
    const json_t *owner = gang == NULL ? owner_of(doc) : NULL;
    const char   *name = gang != NULL ? gang : owner != NULL ? TEXT(owner, "name") : p->name;
    const char   *kind = gang != NULL ? "group" : owner != NULL ? TEXT(owner, "kind") : "pod";
    const char   *uid = gang != NULL ? "" : owner != NULL ? TEXT(owner, "uid") : p->uid;
    TRY(copied(a, (const char *[4]){p->space, kind, name, uid}, &p->group));
    return copied(a, (const char *[4]){p->space, name}, &p->job);
}

static const char *const app_labels[] = {"app.kubernetes.io/name", "app", NULL};
static const char *const type_labels[] = {"nvidia.com/gpu.product", "amd.com/gpu.product-name",
                                          "cloud.google.com/gke-accelerator",
                                          "k8s.amazonaws.com/accelerator", NULL};

static Err take_names(const json_t *doc, Arena *a, Pod *p) {
    const json_t *meta = json_object_get(doc, "metadata"), *spec = json_object_get(doc, "spec");
    const char   *name = TEXT(meta, "name"), *space = TEXT(meta, "namespace");
    const char   *uid = TEXT(meta, "uid");
    if (name == NULL || name[0] == '\0')
        return err_set(ERR_PARSE, "metadata.name: is missing; every pod has one");
    TRY(copy(a, name, &p->name));
    TRY(copy(a, space != NULL && space[0] != '\0' ? space : "default", &p->space));
    if (uid != NULL) TRY(copy(a, uid, &p->uid));
    if (uid == NULL) TRY(copied(a, (const char *[4]){p->space, p->name}, &p->uid));
    TRY(copy(a, first_of(json_object_get(meta, "labels"), app_labels), &p->app));
    TRY(copy(a, first_of(json_object_get(spec, "nodeSelector"), type_labels), &p->gpu_type));
    return take_group(doc, a, p);
}

Err pod_read(const char *place, const json_t *doc, Arena *a, Pod *out) {
    Pod           p = {.created = JOB_UNKNOWN, .began = JOB_UNKNOWN, .ended = JOB_UNKNOWN};
    const json_t *spec = json_object_get(doc, "spec");
    const char   *part = NULL;
    Err           e = take_names(doc, a, &p);
    if (e != ERR_OK) return err_add(e, "%s", place);
    if (e == ERR_OK) e = take_demand(spec, &p, &part);
    if (e == ERR_OK) e = take_times(doc, &p);
    if (e == ERR_OK) e = copy(a, part, &p.unread);
    if (e != ERR_OK) return err_add(e, "%s: pod %.80s/%.80s", place, p.space, p.name);
    int64_t priority = json_integer_value(json_object_get(spec, "priority"));
    p.priority = priority > INT32_MAX    ? INT32_MAX
                 : priority < -INT32_MAX ? -INT32_MAX
                                         : (int32_t)priority;
    *out = p;
    return ERR_OK;
}
