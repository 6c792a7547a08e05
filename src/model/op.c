#include "model/op.h"

#include <string.h>

#include "model/attr.h"
#include "model/graph.h"
#include "model/infer/infer.h"

static const OpInfo infos[OP_COUNT] = {
#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family)                      \
    [OP_##id] = {name, domain, since, in_min, in_max, out_min, out_max, infer_##family},
#include "model/op.def"
#undef XD
};

typedef struct AttrRow {
    const char *name;
    AttrKind    kind;
} AttrRow;

static const AttrRow attr_rows[] = {
#define A(name, kind) {#name, ATTR_##kind},
#include "model/attr.def"
#undef A
};

const OpInfo *op_info(OpId op) { return &infos[op]; }

OpId op_find(const char *domain, const char *name) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(infos[i].name, name) == 0 && strcmp(infos[i].domain, domain) == 0)
            return (OpId)i;
    return OP_COUNT;
}

bool op_is_control_flow(OpId op) { return infos[op].infer == infer_control_flow; }

Err op_failed(const Node *n, Err e) {
    return err_add(e, "node '%s' (%s)", n->name, infos[n->op].name);
}

static Err check_attr(const Attr *a) {
    bool known = false;
    for (size_t i = 0; i < sizeof attr_rows / sizeof *attr_rows; i++) {
        if (strcmp(attr_rows[i].name, a->name) != 0) continue;
        if (attr_rows[i].kind == a->kind) return ERR_OK;
        known = true;
    }
    return known ? err_set(ERR_INVALID, "attribute '%s' has the wrong kind (%d)", a->name, a->kind)
                 : ERR_OK;
}

static Err check_count(const char *what, uint32_t n, uint16_t min, uint16_t max) {
    if (n < min) return err_set(ERR_INVALID, "has %u %s, needs at least %u", n, what, min);
    if (max != VARIADIC && n > max)
        return err_set(ERR_INVALID, "has %u %s, takes at most %u", n, what, max);
    return ERR_OK;
}

Err op_check(const Node *n) {
    const OpInfo *op = &infos[n->op];
    TRY(check_count("inputs", n->n_in, op->in_min, op->in_max));
    TRY(check_count("outputs", n->n_out, op->out_min, op->out_max));
    for (uint32_t i = 0; i < op->in_min && i < n->n_in; i++)
        if (n->in[i] == NO_VALUE) return err_set(ERR_INVALID, "input %u is missing", i);
    for (uint32_t i = 0; i < n->n_attr; i++) TRY(check_attr(&n->attrs[i]));
    return ERR_OK;
}
