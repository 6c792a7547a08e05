// Volumes and resource claims of a pod.
#include <stdio.h>
#include <string.h>

#include "kube/kube_pod_int.h"

static const char *kind_of(const json_t *volume) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)volume, key, value) {
        if (strcmp(key, "name") != 0 && !json_is_null(value)) return key;
    }
    return "emptyDir";
}

static bool without_effect(const char *kind) {
    static const char *const known[] = {
        "emptyDir", "configMap", "secret", "projected", "hostPath",  "downwardAPI", "image",
        "csi",      "nfs",       "cephfs", "gitRepo",   "azureFile", "flexVolume",  "glusterfs"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(kind, known[i]) == 0) return true;
    return false;
}

static void add_claim(PodReader *r, const char *volume, const char *claim, bool owned) {
    const char *space = r->pod->info.namespace_name;
    r->pod->claims[r->pod->n_claims++] =
        (PodClaim){.key = kube_memory_printf(r->memory, "%s/%s", space, claim),
                   .name = kube_memory_text(r->memory, claim),
                   .volume = kube_memory_text(r->memory, volume),
                   .owned = owned};
}

static void read_volume(PodReader *r, const json_t *o) {
    const char *kind = kind_of(o), *name = kube_text(o, "name");
    name = name != NULL ? name : "";
    if (without_effect(kind)) return;
    if (strcmp(kind, "ephemeral") == 0) {
        char claim[512];
        (void)snprintf(claim, sizeof claim, "%s-%s", r->pod->info.name, name);
        add_claim(r, name, claim, true);
    } else if (strcmp(kind, "persistentVolumeClaim") == 0) {
        const char *claim = kube_text(json_object_get(o, kind), "claimName");
        if (claim == NULL)
            pod_refuse(r, "spec.volumes[%.80s].persistentVolumeClaim.claimName: it is missing",
                       name);
        else
            add_claim(r, name, claim, false);
    } else {
        pod_refuse(r, "spec.volumes[%.80s].%.80s: volumes of this kind are not supported", name,
                   kind);
    }
}

// A claim's name is given, or the status says what was made from the template.
static const char *resource_claim(PodReader *r, const json_t *o) {
    const json_t *made = json_object_get(r->status, "resourceClaimStatuses");
    const char   *given = kube_text(o, "resourceClaimName"), *name = kube_text(o, "name");
    for (size_t i = 0; given == NULL && i < json_array_size(made); i++) {
        const char *of = kube_text(json_array_get(made, i), "name");
        if (of != NULL && name != NULL && strcmp(of, name) == 0)
            given = kube_text(json_array_get(made, i), "resourceClaimName");
    }
    return kube_memory_printf(r->memory, "%s/%s", r->pod->info.namespace_name,
                              given != NULL ? given : "");
}

void pod_read_volumes(PodReader *r) {
    const json_t *list = json_object_get(r->spec, "volumes");
    const json_t *devices = json_object_get(r->spec, "resourceClaims");
    uint32_t      n = (uint32_t)json_array_size(devices);
    r->pod->claims = kube_memory_new(r->memory, PodClaim, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) read_volume(r, json_array_get(list, i));
    r->pod->resource_claims = kube_memory_new(r->memory, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        r->pod->resource_claims[i] = resource_claim(r, json_array_get(devices, i));
    r->pod->n_resource_claims = n;
}
