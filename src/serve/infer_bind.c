#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/infer.h"
#include "serve/infer_raw.h"

static bool find(const InferRequest *r, const char *name, uint32_t *out) {
    for (uint32_t i = 0; i < r->n_inputs; i++)
        if (text_equal(r->inputs[i].name, text_of(name))) {
            *out = i;
            return true;
        }
    return false;
}

static Err check_type(const InferSlot *slot, const Tensor *t) {
    if (t->dtype == slot->type.dtype) return ERR_OK;
    const char *takes = infer_type_name(slot->type.dtype), *is = infer_type_name(t->dtype);
    return err_set(ERR_INVALID, "input '%s' is %s, the model takes %s", slot->name,
                   is != NULL ? is : "of no known type", takes != NULL ? takes : "another type");
}

static bool shape_fits(const Tensor *type, const Tensor *t) {
    if (type->rank == RANK_UNKNOWN) return true;
    if (type->rank != t->rank) return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (type->dims[i] >= 0 && type->dims[i] != t->dims[i]) return false;
    return true;
}

// What a model does not declare as empty has to have something in it.
static Err check_shape(const InferSlot *slot, const Tensor *t) {
    char has[160], takes[160];
    if (!shape_fits(&slot->type, t)) {
        tensor_shape_text(t, has, sizeof has);
        tensor_shape_text(&slot->type, takes, sizeof takes);
        return err_set(ERR_INVALID, "input '%s' has shape %s, the model takes %s", slot->name, has,
                       takes);
    }
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 0 && (slot->type.rank < 0 || slot->type.dims[i] != 0))
            return err_set(ERR_INVALID,
                           "input '%s': dimension %" PRId32 " is 0, nothing to compute", slot->name,
                           i);
    return ERR_OK;
}

// A request's input that the model does not have, or that is there twice.
static Err check_names(const InferPort *port, const InferRequest *r) {
    char shown[INFER_SHOWN];
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        uint32_t first = i;
        bool     known = false;
        for (uint32_t k = 0; k < port->n_inputs && !known; k++)
            known = text_equal(r->inputs[i].name, text_of(port->inputs[k].name));
        if (!known)
            return err_set(ERR_INVALID, "inputs[%u]: the model has no input '%s'", i,
                           infer_show(r->inputs[i].name, shown));
        for (uint32_t k = 0; k < i && first == i; k++)
            if (text_equal(r->inputs[i].name, r->inputs[k].name)) first = k;
        if (first != i)
            return err_set(ERR_INVALID, "inputs[%u]: '%s' is inputs[%u] already", i,
                           infer_show(r->inputs[i].name, shown), first);
    }
    return ERR_OK;
}

// The shape that bytes of a raw body have: the open dimension takes what there is.
static Err raw_shape(const InferSlot *slot, size_t len, Tensor *t) {
    int32_t open = -1;
    size_t  row = 0;
    if (slot->type.rank < 0) return err_set(ERR_INVALID, "the model takes inputs of any rank");
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] >= 0) continue;
        if (open >= 0) return err_set(ERR_INVALID, "the model's input has two open dimensions");
        open = i;
        t->dims[i] = 1;
    }
    TRY(tensor_measure(t, &row));
    if (t->dtype == DT_STR && tensor_count(t) != 1)
        return err_set(ERR_INVALID, "the model takes more than one element of BYTES");
    if (open < 0 || t->dtype == DT_STR) return ERR_OK;
    if (row == 0 || len == 0 || len % row != 0)
        return err_set(ERR_INVALID, "%zu bytes are no multiple of the %zu that one row takes", len,
                       row);
    t->dims[open] = (int64_t)(len / row);
    return ERR_OK;
}

static Err bind_raw(const InferPort *port, const InferTensor *body, Arena *a, Tensor *out) {
    if (port->n_inputs != 1)
        return err_set(ERR_INVALID, "a raw body is for models with one input, this one has %u",
                       port->n_inputs);
    Tensor t = port->inputs[0].type;
    size_t len = (size_t)body->t.dims[0];
    TRY(raw_shape(&port->inputs[0], len, &t));
    if (t.dtype == DT_STR) {
        TRY(tensor_room(&t, a));
        *(Str *)t.data = (Str){body->t.data, len};
    } else {
        TRY(infer_raw_read(&t, body->t.data, len, a));
    }
    *out = t;
    return ERR_OK;
}

Err infer_bind(const InferPort *port, const InferRequest *r, Arena *a, Tensor *inputs) {
    if (r->raw_body) {
        Err e = bind_raw(port, &r->inputs[0], a, inputs);
        return e == ERR_OK ? e : err_add(e, "raw body");
    }
    TRY(check_names(port, r));
    for (uint32_t i = 0; i < port->n_inputs; i++) {
        const InferSlot *slot = &port->inputs[i];
        uint32_t         at = 0;
        inputs[i] = (Tensor){0};
        if (!find(r, slot->name, &at)) {
            if (slot->optional) continue;
            return err_set(ERR_INVALID, "input '%s' is missing", slot->name);
        }
        TRY(check_type(slot, &r->inputs[at].t));
        TRY(check_shape(slot, &r->inputs[at].t));
        inputs[i] = r->inputs[at].t;
    }
    return ERR_OK;
}
