// Reading a pod: its identity and status; requests and constraints are in kube_pod_*.c.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kube/kube_pod_int.h"

void pod_refuse(PodReader *r, const char *fmt, ...) {
    char    text[400];
    va_list ap;
    if (r->pod->info.unsupported != NULL) return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->pod->info.unsupported = kube_memory_text(r->memory, text);
}

bool pod_known(PodReader *r, const json_t *object, const char *where, const char *const *known) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)object, key, value) {
        const char *const *k = known;
        while (*k != NULL && strcmp(*k, key) != 0) k++;
        if (*k != NULL || json_is_null(value)) continue;
        pod_refuse(r, "%s.%.80s: the field is not known", where, key);
        return false;
    }
    return true;
}

static KubePhase phase(const char *text) {
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (int i = 0; text != NULL && i < 4; i++)
        if (strcmp(text, names[i]) == 0) return (KubePhase)i;
    return text == NULL || *text == '\0' ? POD_PENDING : POD_UNKNOWN;
}

static TimeNs timestamp(const char *text) {
    struct tm t = {0};
    if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &t) == NULL) return 0;
    return (TimeNs)timegm(&t) * 1000000000;
}

static const char *or_null(const char *text) { return text != NULL && *text != '\0' ? text : NULL; }

static void read_identity(PodReader *r) {
    KubePodInfo *i = &r->pod->info;
    const char  *space = kube_text(r->meta, "namespace"), *uid = kube_text(r->meta, "uid");
    const char  *version = kube_text(r->meta, "resourceVersion");
    r->pod->namespace_word = kube_memory_word(r->memory, space != NULL ? space : "default");
    i->namespace_name = r->pod->namespace_word->text;
    i->name = kube_memory_text(r->memory, kube_text(r->meta, "name"));
    i->uid = kube_memory_text(r->memory, uid != NULL ? uid : "");
    i->version = kube_memory_text(r->memory, version != NULL ? version : "");
    i->created = timestamp(kube_text(r->meta, "creationTimestamp"));
    i->terminating = kube_text(r->meta, "deletionTimestamp") != NULL;
}

static void read_owner(PodReader *r) {
    const json_t *owners = json_object_get(r->meta, "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const char *kind = kube_text(json_array_get(owners, i), "kind");
        if (kind != NULL && strcmp(kind, "DaemonSet") == 0) r->pod->info.daemon = true;
    }
}

static const char *shared(PodReader *r, const char *text) {
    const KubeWord *w = kube_memory_word(r->memory, or_null(text));
    return w != NULL ? w->text : NULL;
}

static void read_standing(PodReader *r) {
    KubePodInfo *i = &r->pod->info;
    const char  *scheduler = kube_text(r->spec, "schedulerName");
    const char  *preemption = kube_text(r->spec, "preemptionPolicy");
    i->node = shared(r, kube_text(r->spec, "nodeName"));
    i->nominated = shared(r, kube_text(r->status, "nominatedNodeName"));
    i->scheduler = shared(r, scheduler != NULL ? scheduler : "default-scheduler");
    i->phase = phase(kube_text(r->status, "phase"));
    int64_t priority = json_integer_value(json_object_get(r->spec, "priority"));
    i->priority = (int32_t)(priority > INT32_MAX   ? INT32_MAX
                            : priority < INT32_MIN ? INT32_MIN
                                                   : priority);
    i->may_preempt = preemption == NULL || strcmp(preemption, "Never") != 0;
    i->gated = json_array_size(json_object_get(r->spec, "schedulingGates")) > 0;
}

static void read_refused(PodReader *r) {
    const json_t *conditions = json_object_get(r->status, "conditions");
    const char   *why = kube_text(r->status, "resize");  // before 1.33
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *c = json_array_get(conditions, i);
        const char   *type = kube_text(c, "type"), *status = kube_text(c, "status");
        if (type != NULL && strcmp(type, "PodResizePending") == 0 &&
            (status == NULL || strcmp(status, "True") == 0))
            why = kube_text(c, "reason");
    }
    if (why == NULL) return;
    if (strcmp(why, "Infeasible") == 0) r->pod->info.refused = "Infeasible";
    if (strcmp(why, "Deferred") == 0) r->pod->info.refused = "Deferred";
}

static bool in_list(const char *list, const char *name) {
    size_t len = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        at += strspn(at, " ");
        size_t n = strcspn(at, ", ");
        if (n == len && strncmp(at, name, len) == 0) return true;
    }
    return false;
}

static bool is_ours(const KubeState *s, const KubePodInfo *i) {
    return strcmp(i->scheduler, s->options.scheduler_name) == 0 &&
           (s->options.namespaces == NULL || in_list(s->options.namespaces, i->namespace_name));
}

static void check_shape(PodReader *r) {
    static const char *const known[] = {
#define X(name) #name,
#include "kube/kube_pod_field.def"
#undef X
        NULL};
    if (!json_is_object(r->spec)) pod_refuse(r, "spec: it is not an object");
    (void)pod_known(r, r->spec, "spec", known);
    static const char *const groups[] = {"workloadRef", "schedulingGroup"};
    for (int i = 0; i < 2; i++)
        if (json_is_object(json_object_get(r->spec, groups[i])))
            pod_refuse(r, "spec.%s: native pod groups are not supported; use the label %s",
                       groups[i], kube_labels[KUBE_LABEL_GANG].key);
}

KubePod *kube_pod_read(KubeState *s, const json_t *object) {
    const json_t *meta = json_object_get(object, "metadata");
    if (kube_text(meta, "name") == NULL) return NULL;
    KubePod *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    kube_memory_init(&p->memory, &s->words);
    PodReader r = {.state = s,
                   .pod = p,
                   .memory = &p->memory,
                   .meta = meta,
                   .spec = json_object_get(object, "spec"),
                   .status = json_object_get(object, "status"),
                   .annotations = json_object_get(meta, "annotations")};
    read_identity(&r);
    read_owner(&r);
    read_standing(&r);
    read_refused(&r);
    p->info.ours = is_ours(s, &p->info);
    check_shape(&r);
    pod_read_requests(&r);
    pod_read_constraints(&r);
    pod_read_affinity(&r);
    pod_read_spread(&r);
    pod_read_volumes(&r);
    pod_read_marks(&r);
    p->waits = p->affinity.n + p->n_spread > 0;
    p->entry.key = kube_memory_printf(&p->memory, "%s/%s", p->info.namespace_name, p->info.name);
    return p;
}

void kube_pod_free(KubePod *p) {
    if (p == NULL) return;
    kube_memory_finish(&p->memory);
    free(p);
}
