#include "model/params/einsum.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "model/attr.h"
#include "model/infer/infer.h"

// Labels: letters, then one for each dimension of the ellipsis, counted from the right.
enum { ELLIPSIS = 256, LABELS = ELLIPSIS + TENSOR_MAX_RANK };

typedef struct Term {
    int32_t n, label[TENSOR_MAX_RANK];
} Term;

typedef struct Reader {
    const char *at;
    int32_t     ellipsis;      // dimensions of the widest ellipsis
    int32_t     seen[LABELS];  // occurrences in the operands
    int64_t     size[LABELS];  // size of the label's dimension
    int32_t     loop[LABELS];  // index of the label's loop plus 1; 0: none yet
    Term        operand[EINSUM_OPERANDS], result;
} Reader;

static Err bad(const char *at, const char *why) {
    return err_set(ERR_INVALID, "equation: %s at '%.16s'", why, at);
}

static void skip(Reader *r) {
    while (*r->at == ' ') r->at++;
}

static Err add_label(Reader *r, Term *t, int32_t label) {
    if (t->n >= TENSOR_MAX_RANK) return bad(r->at, "too many dimensions");
    t->label[t->n++] = label;
    return ERR_OK;
}

// One term, up to ',' or '->' or the end. An ellipsis has the dimensions of the operand's rank that
// the letters leave; rank -1: the result, with the widest ellipsis of the operands.
static Err read_term(Reader *r, int32_t rank, Term *t) {
    int32_t dots = -1;
    for (skip(r); *r->at != '\0' && *r->at != ',' && *r->at != '-'; skip(r)) {
        if (strncmp(r->at, "...", 3) == 0 && dots < 0) {
            dots = t->n;
            r->at += 3;
        } else if (isalpha((unsigned char)*r->at)) {
            TRY(add_label(r, t, (unsigned char)*r->at));
            r->at++;
        } else {
            return bad(r->at, "unexpected character");
        }
    }
    int32_t wide = rank < 0 ? r->ellipsis : rank - t->n;
    if (dots < 0 && rank >= 0 && wide != 0)
        return bad(r->at, "the term and its operand differ in rank");
    if (dots < 0) return ERR_OK;
    if (wide < 0 || wide + t->n > TENSOR_MAX_RANK)
        return bad(r->at, "the ellipsis exceeds the rank");
    memmove(t->label + dots + wide, t->label + dots, (size_t)(t->n - dots) * sizeof *t->label);
    for (int32_t i = 0; i < wide; i++) t->label[dots + i] = ELLIPSIS + wide - 1 - i;
    t->n += wide;
    if (wide > r->ellipsis) r->ellipsis = wide;
    return ERR_OK;
}

// A label has one size in all operands; 1 broadcasts.
static Err count_term(Reader *r, const Term *t, const Tensor *shape) {
    for (int32_t i = 0; i < t->n; i++) {
        int32_t l = t->label[i];
        int64_t n = shape->dims[i];
        if (r->seen[l] > 0 && r->size[l] != n && r->size[l] != 1 && n != 1)
            return err_set(ERR_INVALID, "equation: a label has sizes %" PRId64 " and %" PRId64,
                           r->size[l], n);
        if (r->seen[l] == 0 || r->size[l] == 1) r->size[l] = n;
        r->seen[l]++;
    }
    return ERR_OK;
}

// Without '->': the ellipsis, then the labels that occur once, in alphabetical order.
static Err default_result(Reader *r) {
    for (int32_t i = r->ellipsis - 1; i >= 0; i--) TRY(add_label(r, &r->result, ELLIPSIS + i));
    for (int32_t l = 0; l < ELLIPSIS; l++)
        if (r->seen[l] == 1) TRY(add_label(r, &r->result, l));
    return ERR_OK;
}

static Err read_result(Reader *r) {
    if (strncmp(r->at, "->", 2) != 0)
        return *r->at == '\0' ? default_result(r) : bad(r->at, "unexpected character");
    r->at += 2;
    TRY(read_term(r, -1, &r->result));
    return *r->at == '\0' ? ERR_OK : bad(r->at, "text after the result");
}

static Err add_loop(Reader *r, Einsum *e, int32_t label) {
    if (e->n >= EINSUM_LABELS)
        return err_set(ERR_UNSUPPORTED, "equation: more than %d labels", EINSUM_LABELS);
    e->dims[e->n++] = r->size[label];
    r->loop[label] = e->n;
    return ERR_OK;
}

static Err make_loops(Reader *r, Einsum *e) {
    for (int32_t i = 0; i < r->result.n; i++) {
        int32_t l = r->result.label[i];
        if (r->seen[l] == 0) return bad("", "the result has a label that no operand has");
        if (r->loop[l] != 0) return bad("", "the result repeats a label");
        TRY(add_loop(r, e, l));
    }
    e->n_out = e->n;
    for (uint32_t k = 0; k < e->operands; k++)
        for (int32_t i = 0; i < r->operand[k].n; i++) {
            int32_t l = r->operand[k].label[i];
            if (r->loop[l] == 0) TRY(add_loop(r, e, l));
            e->at[k][i] = r->loop[l] - 1;
        }
    return ERR_OK;
}

Err einsum_read(const OpCall *c, Einsum *e) {
    Reader r = {.at = attr_str(c->node, "equation", "")};
    *e = (Einsum){.operands = c->node->n_in};
    if (e->operands > EINSUM_OPERANDS)
        return err_set(ERR_UNSUPPORTED, "has more than %d operands", EINSUM_OPERANDS);
    for (uint32_t i = 0; i < e->operands; i++) {
        TRY(infer_present(c, i));
        if (i > 0 && *r.at++ != ',') return bad(r.at - 1, "fewer terms than operands");
        TRY(read_term(&r, c->in[i]->rank, &r.operand[i]));
        TRY(count_term(&r, &r.operand[i], c->in[i]));
    }
    TRY(read_result(&r));
    return make_loops(&r, e);
}

void einsum_strides(const Einsum *e, uint32_t operand, const Tensor *t, int64_t *stride) {
    int64_t step = 1;
    memset(stride, 0, EINSUM_LABELS * sizeof *stride);
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        if (t->dims[i] != 1) stride[e->at[operand][i]] += step;
        step *= t->dims[i];
    }
}
