// What a pod requests: its containers, sidecars, steps of initialisation, overhead; and what a
// resize that is under way still holds.
#include <stdio.h>
#include <string.h>

#include "kube/kube_pod_int.h"
#include "kube/quantity.h"

// Sums of thousands of pods stay within int64_t; allocatable is cut below it, so that what is cut
// never fits.
#define AMOUNT_MOST (INT64_C(1) << 50)

// The rest is kept for what nodes have: pods may name whatever they like.
enum { NAMED_BY_PODS = KUBE_RESOURCES - 8 };

static bool is_fraction(const char *name) {
    return strcmp(name, "nvidia.com/gpucores") == 0 || strcmp(name, "nvidia.com/gpumem") == 0 ||
           strcmp(name, "nvidia.com/gpumem-percentage") == 0;
}

static bool read_amount(PodReader *r, const char *where, const char *name, const json_t *q,
                        int64_t *out) {
    char        number[32];
    const char *text = json_string_value(q);
    if (json_is_integer(q)) {
        (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(q));
        text = number;
    }
    Err e = text == NULL               ? err_set(ERR_PARSE, "not a quantity")
            : strcmp(name, "cpu") == 0 ? quantity_milli(text, out)
                                       : quantity_units(text, out);
    if (e == ERR_OK && *out < 0) e = err_set(ERR_INVALID, "it is negative");
    if (e != ERR_OK) pod_refuse(r, "%s.%.80s: %s", where, name, err_why());
    if (e == ERR_OK && *out > AMOUNT_MOST) *out = AMOUNT_MOST;
    return e == ERR_OK;
}

// HAMi's shares of a GPU are read beside a count of GPUs; nodes do not advertise them.
static void read_list(PodReader *r, const json_t *list, const char *where, KubeAmounts *out) {
    const char *key;
    json_t     *value;
    int64_t     amount = 0;
    bool        gpu = json_object_get(list, r->state->options.gpu_resource) != NULL;
    if (list != NULL && !json_is_object(list) && !json_is_null(list))
        pod_refuse(r, "%s: it is not an object", where);
    json_object_foreach((json_t *)list, key, value) {
        if (strcmp(key, "pods") == 0 || !read_amount(r, where, key, value, &amount)) continue;
        if (gpu && is_fraction(key)) {
            if (strcmp(key, "nvidia.com/gpucores") == 0 && amount > 0 && amount < 100)
                r->pod->info.gpu_milli = (uint32_t)amount * 10;
            continue;
        }
        uint32_t i = amount > 0 ? kube_resource(r->state, key, NAMED_BY_PODS) : KUBE_RESOURCES;
        if (i < KUBE_RESOURCES) out->of[i] = amount;
        if (amount > 0 && i == KUBE_RESOURCES)
            pod_refuse(r, "%s.%.80s: more than %d kinds of resources are in use", where, key,
                       NAMED_BY_PODS);
    }
}

static void add(KubeAmounts *a, const KubeAmounts *b) {
    for (int i = 0; i < KUBE_RESOURCES; i++) {
        a->of[i] += b->of[i];
        if (a->of[i] > AMOUNT_MOST) a->of[i] = AMOUNT_MOST;
    }
}

static void most(KubeAmounts *a, const KubeAmounts *b) {
    for (int i = 0; i < KUBE_RESOURCES; i++)
        if (b->of[i] > a->of[i]) a->of[i] = b->of[i];
}

static const json_t *status_of(const PodReader *r, const char *list, const char *name) {
    const json_t *all = json_object_get(r->status, list);
    for (size_t i = 0; name != NULL && i < json_array_size(all); i++) {
        const char *found = kube_text(json_array_get(all, i), "name");
        if (found != NULL && strcmp(found, name) == 0) return json_array_get(all, i);
    }
    return NULL;
}

// A resize holds the larger of what is asked for, what was allocated and what is in effect; one
// that can never be done asks for nothing.
static KubeAmounts charge(PodReader *r, const json_t *container, const char *statuses) {
    KubeAmounts   asked = {0}, held = {0}, actual = {0};
    const json_t *status = status_of(r, statuses, kube_text(container, "name"));
    read_list(r, json_object_get(json_object_get(container, "resources"), "requests"),
              "spec.containers.resources.requests", &asked);
    if (status == NULL || r->pod->info.node == NULL) return asked;
    read_list(r, json_object_get(status, "allocatedResources"),
              "status.containerStatuses.allocatedResources", &held);
    read_list(r, json_object_get(json_object_get(status, "resources"), "requests"),
              "status.containerStatuses.resources", &actual);
    most(&held, &actual);
    for (int i = KUBE_CPU; i <= KUBE_MEMORY && r->pod->info.refused != NULL; i++)
        if (strcmp(r->pod->info.refused, "Infeasible") == 0 && held.of[i] > 0)
            asked.of[i] = held.of[i];
    most(&asked, &held);
    return asked;
}

static void add_steps(PodReader *r, KubeAmounts *sum) {
    const json_t *steps = json_object_get(r->spec, "initContainers");
    KubeAmounts   sidecars = {0}, peak = {0};
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *c = json_array_get(steps, i);
        const char   *restart = kube_text(c, "restartPolicy");
        KubeAmounts   own = charge(r, c, "initContainerStatuses");
        bool          stays = restart != NULL && strcmp(restart, "Always") == 0;
        if (stays) add(sum, &own);
        add(&own, &sidecars);
        if (stays) sidecars = own;
        most(&peak, &own);
    }
    most(sum, &peak);
}

// Requests of the pod as a whole replace those of its containers.
static void replace(PodReader *r, KubeAmounts *sum) {
    const char   *key;
    json_t       *value;
    KubeAmounts   whole = {0};
    const json_t *list = json_object_get(json_object_get(r->spec, "resources"), "requests");
    read_list(r, list, "spec.resources.requests", &whole);
    json_object_foreach((json_t *)list, key, value) {
        if (strcmp(key, "cpu") != 0 && strcmp(key, "memory") != 0 &&
            strncmp(key, "hugepages-", 10) != 0)
            continue;
        uint32_t i = kube_resource(r->state, key, NAMED_BY_PODS);
        if (i < KUBE_RESOURCES) sum->of[i] = whole.of[i];
    }
}

void pod_read_requests(PodReader *r) {
    const json_t *containers = json_object_get(r->spec, "containers");
    KubeAmounts   sum = {0}, overhead = {0};
    r->pod->info.gpu_milli = 1000;
    for (size_t i = 0; i < json_array_size(containers); i++) {
        KubeAmounts own = charge(r, json_array_get(containers, i), "containerStatuses");
        add(&sum, &own);
    }
    add_steps(r, &sum);
    replace(r, &sum);
    read_list(r, json_object_get(r->spec, "overhead"), "spec.overhead", &overhead);
    add(&sum, &overhead);
    sum.of[KUBE_PODS] = 1;
    r->pod->info.requests = sum;
}
