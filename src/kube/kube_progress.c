#include "kube/kube_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static const TimeNs least_gap = INT64_C(1000000000);

static uint32_t fault(uint32_t status, char why[PROGRESS_WHY], const char *text) {
    (void)snprintf(why, PROGRESS_WHY, "progress report: %.200s", text);
    return status;
}

static bool number_of(const json_t *doc, const char *key, double most, double *out) {
    const json_t *x = json_object_get(doc, key);
    *out = x != NULL ? json_number_value(x) : 0;
    return (x == NULL || json_is_number(x)) && isfinite(*out) && *out >= 0 && *out <= most;
}

static uint32_t pod_of(const KubeState *s, const json_t *doc, TimeNs now, KubePod **out,
                       char why[PROGRESS_WHY]) {
    const char *keys[] = {"namespace", "pod", "uid"}, *words[3];
    for (uint32_t i = 0; i < 3; i++) {
        words[i] = json_string_value(json_object_get(doc, keys[i]));
        if (words[i] == NULL) return fault(400, why, "give namespace, pod and uid as strings");
    }
    *out = kube_state_pod(s, words[0], words[1]);
    if (*out == NULL) return fault(404, why, "no such pod, or it is outside the namespaces");
    const KubePodInfo *p = kube_pod_info(*out);
    if (strcmp(p->uid, words[2]) != 0)
        return fault(409, why, "the uid is not the pod's: it was deleted and made again");
    if (!p->ours || p->node == NULL || p->terminating)
        return fault(409, why, "the pod is not running under this scheduler");
    if (p->progress_at > 0 && now - p->progress_at < least_gap && now >= p->progress_at)
        return fault(429, why, "at most one report per second and pod");
    return 200;
}

static uint32_t read_doc(const KubeState *s, const json_t *doc, TimeNs now, KubeReport *out,
                         char why[PROGRESS_WHY]) {
    KubeReport r = {.pod = NULL};
    if (json_object_get(doc, "iterations") == NULL ||
        !number_of(doc, "iterations", 1e15, &r.iterations) ||
        !number_of(doc, "iterations_per_second", 1e9, &r.rate))
        return fault(400, why, "iterations and iterations_per_second are numbers from 0");
    uint32_t status = pod_of(s, doc, now, &r.pod, why);
    if (status == 200) *out = r;
    return status;
}

uint32_t kube_progress_read(const KubeState *s, const char *body, size_t len, TimeNs now,
                            KubeReport *out, char why[PROGRESS_WHY]) {
    json_t *doc = NULL;
    if (len > PROGRESS_BYTES) return fault(400, why, "it is longer than 4096 bytes");
    if (json_parse("progress report", body, len, &doc) != ERR_OK) {
        (void)snprintf(why, PROGRESS_WHY, "%.250s", err_why());
        return 400;
    }
    uint32_t status = read_doc(s, doc, now, out, why);
    json_decref(doc);
    return status;
}
