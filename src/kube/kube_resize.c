#include "kube/kube_resize.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kube/quantity.h"

enum { CORES, MEMORY, RESIZED };

#define MOST (INT64_C(1) << 50)  // sums of containers do not overflow

static const char *const keys[RESIZED] = {"cpu", "memory"};

typedef struct ContainerAmounts {
    const char *name;
    int64_t     request[RESIZED], limit[RESIZED];  // millicores, bytes; -1: none
} ContainerAmounts;

static Err read_amount(const json_t *amounts, uint32_t r, int64_t *out) {
    const json_t *x = json_object_get(amounts, keys[r]);
    *out = -1;
    if (x == NULL) return ERR_OK;
    if (!json_is_string(x)) return err_set(ERR_ARG, "resize: %s is no text", keys[r]);
    const char *text = json_string_value(x);
    TRY(r == CORES ? quantity_milli(text, out) : quantity_units(text, out));
    if (*out >= 0 && *out <= MOST) return ERR_OK;
    return err_set(ERR_ARG, "resize: %s of %.40s is out of range", keys[r], text);
}

static bool restarts(const json_t *container) {
    const json_t *rules = json_object_get(container, "resizePolicy");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *how =
            json_string_value(json_object_get(json_array_get(rules, i), "restartPolicy"));
        if (how != NULL && strcmp(how, "RestartContainer") == 0) return true;
    }
    return false;
}

static Err read_container(const json_t *container, ContainerAmounts *to) {
    const json_t *resources = json_object_get(container, "resources");
    to->name = json_string_value(json_object_get(container, "name"));
    if (to->name == NULL) return err_set(ERR_ARG, "resize: a container has no name");
    if (restarts(container))
        return err_set(ERR_ARG, "resize: container %.60s would restart", to->name);
    for (uint32_t r = 0; r < RESIZED; r++) {
        TRY(read_amount(json_object_get(resources, "requests"), r, &to->request[r]));
        TRY(read_amount(json_object_get(resources, "limits"), r, &to->limit[r]));
    }
    return ERR_OK;
}

static void put_amount(json_t *to, uint32_t r, int64_t x) {
    char text[32];
    (void)snprintf(text, sizeof text, r == CORES ? "%" PRId64 "m" : "%" PRId64, x);
    (void)json_object_set_new(to, keys[r], json_string(text));
}

static bool is_tied(const ContainerAmounts *c, uint32_t r) { return c->limit[r] == c->request[r]; }

// The container's part of the new total.
static int64_t part_of(const ContainerAmounts *c, uint32_t r, int64_t sum, int64_t total) {
    int64_t x = (int64_t)((double)total * ((double)c->request[r] / (double)sum));
    if (x < 1) x = 1;
    if (c->limit[r] >= 0 && !is_tied(c, r) && x >= c->limit[r]) x = c->limit[r] - 1;
    return x;
}

static json_t *resources_of(const ContainerAmounts *c, const int64_t sum[RESIZED],
                            const int64_t total[RESIZED]) {
    json_t *requests = json_object(), *limits = json_object();
    for (uint32_t r = 0; r < RESIZED; r++) {
        if (c->request[r] <= 0 || sum[r] <= 0 || total[r] <= 0) continue;
        int64_t x = part_of(c, r, sum[r], total[r]);
        if (x == c->request[r]) continue;
        put_amount(requests, r, x);
        if (is_tied(c, r)) put_amount(limits, r, x);
    }
    if (json_object_size(requests) == 0) {
        json_decref(requests);
        json_decref(limits);
        return NULL;
    }
    json_t *out = json_pack("{s:o}", "requests", requests);
    if (json_object_size(limits) > 0)
        (void)json_object_set_new(out, "limits", limits);
    else
        json_decref(limits);
    return out;
}

enum { CONTAINERS = 64 };

Err kube_resize_patch(const json_t *pod, int64_t cores_milli, int64_t bytes, char **out) {
    const json_t *list = json_object_get(json_object_get(pod, "spec"), "containers");
    const char   *version =
        json_string_value(json_object_get(json_object_get(pod, "metadata"), "resourceVersion"));
    ContainerAmounts all[CONTAINERS];
    int64_t          sum[RESIZED] = {0}, total[RESIZED] = {cores_milli, bytes};
    size_t           n = json_array_size(list);
    *out = NULL;
    if (n == 0 || n > CONTAINERS || version == NULL)
        return err_set(ERR_ARG, "resize: a pod with %zu containers", n);
    for (size_t i = 0; i < n; i++) {
        TRY(read_container(json_array_get(list, i), &all[i]));
        for (uint32_t r = 0; r < RESIZED; r++)
            if (all[i].request[r] > 0) sum[r] += all[i].request[r];
    }
    json_t *changed = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *resources = resources_of(&all[i], sum, total);
        if (resources != NULL)
            (void)json_array_append_new(
                changed, json_pack("{s:s,s:o}", "name", all[i].name, "resources", resources));
    }
    bool    any = json_array_size(changed) > 0;
    json_t *doc = json_pack("{s:{s:s},s:{s:o}}", "metadata", "resourceVersion", version, "spec",
                            "containers", changed);
    if (any && doc != NULL) *out = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
    return any && *out == NULL ? err_set(ERR_LIMIT, "no memory for a patch") : ERR_OK;
}
