#include "model/attr.h"

#include <string.h>

const Attr *attr_find(const Node *n, const char *name) {
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attrs[i].name, name) == 0) return &n->attrs[i];
    return NULL;
}

static const Attr *find_kind(const Node *n, const char *name, AttrKind kind) {
    const Attr *a = attr_find(n, name);
    return a != NULL && a->kind == kind ? a : NULL;
}

bool attr_has(const Node *n, const char *name) { return attr_find(n, name) != NULL; }

int64_t attr_int(const Node *n, const char *name, int64_t otherwise) {
    const Attr *a = find_kind(n, name, ATTR_INT);
    return a != NULL ? a->v.i : otherwise;
}

float attr_float(const Node *n, const char *name, float otherwise) {
    const Attr *a = find_kind(n, name, ATTR_FLOAT);
    return a != NULL ? a->v.f : otherwise;
}

const char *attr_str(const Node *n, const char *name, const char *otherwise) {
    const Attr *a = find_kind(n, name, ATTR_STRING);
    return a != NULL ? a->v.s.at : otherwise;
}

bool attr_is(const Node *n, const char *name, const char *text, bool otherwise) {
    const char *s = attr_str(n, name, NULL);
    return s != NULL ? strcmp(s, text) == 0 : otherwise;
}

Err attr_enum(const Node *n, const char *name, const char *const *names, int count, int *index) {
    const char *s = attr_str(n, name, names[0]);
    for (int i = 0; i < count; i++)
        if (strcmp(s, names[i]) == 0) {
            *index = i;
            return ERR_OK;
        }
    return err_set(ERR_UNSUPPORTED, "%s '%.32s' is not supported", name, s);
}

const int64_t *attr_ints(const Node *n, const char *name, uint32_t *count) {
    const Attr *a = find_kind(n, name, ATTR_INTS);
    *count = a != NULL ? a->n : 0;
    return a != NULL ? a->v.ints : NULL;
}

const float *attr_floats(const Node *n, const char *name, uint32_t *count) {
    const Attr *a = find_kind(n, name, ATTR_FLOATS);
    *count = a != NULL ? a->n : 0;
    return a != NULL ? a->v.floats : NULL;
}

const Str *attr_strings(const Node *n, const char *name, uint32_t *count) {
    const Attr *a = find_kind(n, name, ATTR_STRINGS);
    *count = a != NULL ? a->n : 0;
    return a != NULL ? a->v.strings : NULL;
}

const Tensor *attr_tensor(const Node *n, const char *name) {
    const Attr *a = find_kind(n, name, ATTR_TENSOR);
    return a != NULL ? a->v.t : NULL;
}

Graph *attr_graph(const Node *n, const char *name) {
    const Attr *a = find_kind(n, name, ATTR_GRAPH);
    return a != NULL ? a->v.g : NULL;
}
