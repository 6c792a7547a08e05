#include "kube/kube_bind_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { READS = 5 };

typedef struct BindCall {
    KubeApi     *api;
    KubeBinding *binding;
    KubeCall     call;
    char        *path, *pod_path, *body, *node, *uid;
    uint32_t     reads;
} BindCall;

static void end(BindCall *b, const char *fault) {
    b->binding->done(b->binding, fault);
    free(b->path);
    free(b->pod_path);
    free(b->body);
    free(b->node);
    free(b->uid);
    free(b);
}

static const char *text_in(const json_t *o, const char *object, const char *key) {
    const char *text = json_string_value(json_object_get(json_object_get(o, object), key));
    return text != NULL ? text : "";
}

static void read_back(BindCall *b);

static void after_read(void *self, KubeCall *c, const KubeReply *r) {
    BindCall *b = self;
    json_t   *pod = NULL;
    (void)c;
    if (r->outcome != KUBE_DONE || r->status >= 500) {
        read_back(b);
        return;
    }
    if (r->status != 200 || json_parse("pod", r->body, r->len, &pod) != ERR_OK) {
        end(b, "the pod is gone");
        return;
    }
    bool same = strcmp(text_in(pod, "metadata", "uid"), b->uid) == 0;
    bool here = strcmp(text_in(pod, "spec", "nodeName"), b->node) == 0;
    json_decref(pod);
    end(b, !same ? "the pod was made anew under its name" : here ? NULL : "the pod is not bound");
}

static void read_back(BindCall *b) {
    if (b->reads++ == READS) {
        end(b, "the outcome is not known: the pod cannot be read");
        return;
    }
    b->call = (KubeCall){.method = "GET", .path = b->pod_path, .done = after_read, .self = b};
    kube_api_submit(b->api, &b->call);
}

static void after_bind(void *self, KubeCall *c, const KubeReply *r) {
    BindCall *b = self;
    char      why[300];
    (void)c;
    bool done = r->outcome == KUBE_DONE;
    if (done && r->status / 100 == 2) {
        end(b, NULL);
    } else if (r->outcome == KUBE_UNKNOWN || r->status >= 500 || r->status == 409) {
        read_back(b);
    } else {
        if (done)
            (void)snprintf(why, sizeof why, "status %u: %.250s", r->status, r->body);
        else
            (void)snprintf(why, sizeof why, "%.250s", r->fault);
        end(b, why);
    }
}

static bool fill(BindCall *b, const KubePodInfo *p, const char *node) {
    json_t *doc = json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s}}", "apiVersion", "v1", "kind",
                            "Binding", "metadata", "name", p->name, "uid", p->uid, "target",
                            "apiVersion", "v1", "kind", "Node", "name", node);
    b->body = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    b->node = strdup(node);
    b->uid = strdup(p->uid);
    if (asprintf(&b->pod_path, "/api/v1/namespaces/%s/pods/%s", p->namespace_name, p->name) < 0)
        b->pod_path = NULL;
    if (asprintf(&b->path, "/api/v1/namespaces/%s/pods/%s/binding", p->namespace_name, p->name) < 0)
        b->path = NULL;
    return b->body != NULL && b->node != NULL && b->uid != NULL && b->path != NULL &&
           b->pod_path != NULL;
}

void kube_bind_call(KubeApi *a, const KubePodInfo *p, const char *node, KubeBinding *binding) {
    BindCall *b = calloc(1, sizeof *b);
    if (b == NULL) {
        binding->done(binding, "no memory");
        return;
    }
    *b = (BindCall){.api = a, .binding = binding};
    if (!fill(b, p, node)) {
        end(b, "no memory");
        return;
    }
    b->call = (KubeCall){.method = "POST",
                         .path = b->path,
                         .body = b->body,
                         .len = strlen(b->body),
                         .done = after_bind,
                         .self = b};
    kube_api_submit(a, &b->call);
}
