// Constraints of a pod against other pods: affinity, anti-affinity, topology spread.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_pod_int.h"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static bool has_rule(const LabelSelector *s, const KubeWord *key) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rules[i].key == key) return true;
    return false;
}

// The API server writes matchLabelKeys into the selector when it creates the pod; older ones leave
// it to the scheduler.
static void add_keys(PodReader *r, const json_t *keys, LabelOperator op, LabelSelector *s) {
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const KubeWord *key =
            kube_memory_word(r->memory, json_string_value(json_array_get(keys, i)));
        const KubeWord *value = key != NULL ? labels_find(r->pod->labels, key) : NULL;
        if (value != NULL && !s->nothing && !has_rule(s, key))
            *s = label_selector_with(s, r->memory, key, op, value);
    }
}

static const KubeWord *const *read_namespaces(PodReader *r, const json_t *list, uint32_t *n) {
    const KubeWord **at = kube_memory_new(r->memory, const KubeWord *, json_array_size(list) + 1);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name != NULL) at[(*n)++] = kube_memory_word(r->memory, name);
    }
    return at;
}

static size_t rule_length(const LabelRule *x) {
    return x->n == 1 ? strlen(x->key->text) + strlen(x->values[0]->text) + 2 : 0;
}

static char *rule_text(const LabelRule *x, char *end) {
    if (x->n != 1) return end;
    return stpcpy(stpcpy(stpcpy(stpcpy(end, " "), x->key->text), "="), x->values[0]->text);
}

// Pods of one controller have equal terms: they are matched once for all of them.
static const KubeWord *identity(PodReader *r, const json_t *o, const PodTerm *t) {
    char *text = json_dumps(o, JSON_SORT_KEYS | JSON_COMPACT);
    char *full = NULL;
    if (text == NULL) return NULL;
    size_t room = strlen(text) + 1;
    for (uint32_t i = 0; i < t->labels.n; i++) room += rule_length(&t->labels.rules[i]);
    room += t->n > 0 ? strlen(t->namespaces[0]->text) + 1 : 0;
    full = calloc(1, room);
    CHECK(full != NULL);
    char *end = stpcpy(full, text);
    if (t->n > 0) end = stpcpy(stpcpy(end, " "), t->namespaces[0]->text);
    for (uint32_t i = 0; i < t->labels.n; i++) end = rule_text(&t->labels.rules[i], end);
    const KubeWord *w = kube_memory_word(r->memory, full);
    free(full);
    free(text);
    return w;
}

static void read_term(PodReader *r, const json_t *o, const char *where, PodTerm *t) {
    static const char *const known[] = {
        "labelSelector",     "namespaces", "namespaceSelector", "topologyKey", "matchLabelKeys",
        "mismatchLabelKeys", NULL};
    (void)pod_known(r, o, where, known);
    if (label_selector_read(json_object_get(o, known[0]), r->memory, &t->labels) != ERR_OK)
        pod_refuse(r, "%s.labelSelector: %s", where, err_why());
    if (label_selector_read(json_object_get(o, known[2]), r->memory, &t->namespace_labels) !=
        ERR_OK)
        pod_refuse(r, "%s.namespaceSelector: %s", where, err_why());
    t->namespaces = read_namespaces(r, json_object_get(o, known[1]), &t->n);
    if (t->n == 0 && t->namespace_labels.nothing) {
        ((const KubeWord **)(uintptr_t)t->namespaces)[0] = r->pod->namespace_word;
        t->n = 1;
    }
    t->topology = kube_memory_word(r->memory, kube_text(o, known[3]));
    if (t->topology == NULL) {
        pod_refuse(r, "%s.topologyKey: it is missing", where);
        t->topology = kube_memory_word(r->memory, "");
    }
    add_keys(r, json_object_get(o, known[4]), LABEL_IN, &t->labels);
    add_keys(r, json_object_get(o, known[5]), LABEL_NOT_IN, &t->labels);
    t->identity = identity(r, o, t);
}

static PodTerms read_required(PodReader *r, const json_t *o, const char *where) {
    const json_t *list = json_object_get(o, REQUIRED);
    PodTerms      t = {kube_memory_new(r->memory, PodTerm, json_array_size(list)), 0};
    for (; t.n < json_array_size(list); t.n++)
        read_term(r, json_array_get(list, t.n), where, &t.at[t.n]);
    return t;
}

static PodTerms read_preferred(PodReader *r, const json_t *o, const char *where) {
    const json_t *list = json_object_get(o, PREFERRED);
    PodTerms      t = {kube_memory_new(r->memory, PodTerm, json_array_size(list)), 0};
    for (; t.n < json_array_size(list); t.n++) {
        const json_t *x = json_array_get(list, t.n);
        int64_t       weight = json_integer_value(json_object_get(x, "weight"));
        read_term(r, json_object_get(x, "podAffinityTerm"), where, &t.at[t.n]);
        t.at[t.n].weight = weight < 0 || weight > 100 ? 0 : (int32_t)weight;
    }
    return t;
}

void pod_read_affinity(PodReader *r) {
    static const char *const kinds[] = {"nodeAffinity", "podAffinity", "podAntiAffinity", NULL};
    static const char *const known[] = {REQUIRED, PREFERRED, NULL};
    const json_t            *o = json_object_get(r->spec, "affinity");
    const json_t *near = json_object_get(o, kinds[1]), *apart = json_object_get(o, kinds[2]);
    (void)pod_known(r, o, "spec.affinity", kinds);
    (void)pod_known(r, near, "spec.affinity.podAffinity", known);
    (void)pod_known(r, apart, "spec.affinity.podAntiAffinity", known);
    r->pod->affinity = read_required(r, near, "spec.affinity.podAffinity");
    r->pod->anti = read_required(r, apart, "spec.affinity.podAntiAffinity");
    r->pod->preferred = read_preferred(r, near, "spec.affinity.podAffinity");
    r->pod->preferred_anti = read_preferred(r, apart, "spec.affinity.podAntiAffinity");
}

static bool policy(PodReader *r, const json_t *o, const char *key, bool otherwise) {
    const char *text = kube_text(o, key);
    if (text == NULL) return otherwise;
    if (strcmp(text, "Honor") == 0 || strcmp(text, "Ignore") == 0)
        return strcmp(text, "Honor") == 0;
    pod_refuse(r, "spec.topologySpreadConstraints.%s: '%.40s' is not supported", key, text);
    return otherwise;
}

static int64_t count(PodReader *r, const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    if (value == NULL || json_is_null(value)) return 1;
    if (json_integer_value(value) >= 1 && json_integer_value(value) <= INT32_MAX)
        return json_integer_value(value);
    pod_refuse(r, "spec.topologySpreadConstraints.%s: it is not a positive number", key);
    return 1;
}

static void read_rule(PodReader *r, const json_t *o, SpreadRule *x) {
    static const char *const known[] = {"maxSkew",          "topologyKey",    "whenUnsatisfiable",
                                        "labelSelector",    "minDomains",     "nodeAffinityPolicy",
                                        "nodeTaintsPolicy", "matchLabelKeys", NULL};
    static const char        where[] = "spec.topologySpreadConstraints";
    const char *key = kube_text(o, "topologyKey"), *when = kube_text(o, "whenUnsatisfiable");
    (void)pod_known(r, o, where, known);
    if (label_selector_read(json_object_get(o, "labelSelector"), r->memory, &x->labels) != ERR_OK)
        pod_refuse(r, "%s.labelSelector: %s", where, err_why());
    if (key == NULL) pod_refuse(r, "%s.topologyKey: it is missing", where);
    x->topology = kube_memory_word(r->memory, key != NULL ? key : "");
    x->hard = when == NULL || strcmp(when, "ScheduleAnyway") != 0;
    if (x->hard && when != NULL && strcmp(when, "DoNotSchedule") != 0)
        pod_refuse(r, "%s.whenUnsatisfiable: '%.40s' is not supported", where, when);
    x->max_skew = count(r, o, "maxSkew");
    x->min_domains = count(r, o, "minDomains");
    x->ignores_affinity = !policy(r, o, "nodeAffinityPolicy", true);
    x->heeds_taints = policy(r, o, "nodeTaintsPolicy", false);
    add_keys(r, json_object_get(o, "matchLabelKeys"), LABEL_IN, &x->labels);
}

void pod_read_spread(PodReader *r) {
    const json_t *list = json_object_get(r->spec, "topologySpreadConstraints");
    uint32_t      n = (uint32_t)json_array_size(list);
    r->pod->spread = kube_memory_new(r->memory, SpreadRule, n);
    for (uint32_t i = 0; i < n; i++) read_rule(r, json_array_get(list, i), &r->pod->spread[i]);
    r->pod->n_spread = n;
}
