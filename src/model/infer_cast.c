#include <inttypes.h>
#include <string.h>

#include "model/infer.h"
#include "model/infer_math.h"

#define TYPES_CAST (TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR))

// Before operator set 6 the type was named; these are ONNX's names.
static const struct TypeName {
    const char *name;
    DType       type;
} type_names[] = {
    {"FLOAT", DT_F32}, {"DOUBLE", DT_F64}, {"FLOAT16", DT_F16}, {"BFLOAT16", DT_BF16},
    {"INT8", DT_I8},   {"INT16", DT_I16},  {"INT32", DT_I32},   {"INT64", DT_I64},
    {"UINT8", DT_U8},  {"UINT16", DT_U16}, {"UINT32", DT_U32},  {"UINT64", DT_U64},
    {"BOOL", DT_BOOL}, {"STRING", DT_STR},
};

static Err named(const char *name, DType *to) {
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type_names[i].name, name) == 0) {
            *to = type_names[i].type;
            return ERR_OK;
        }
    return err_set(ERR_UNSUPPORTED, "a cast to type '%.20s' is not supported", name);
}

Err infer_cast_to(const OpCall *c, DType *to) {
    if (c->node->op == OP_CastLike) {
        TRY(infer_need(c->in[1], TYPES_CAST, "target_type"));
        *to = c->in[1]->dtype;
        return ERR_OK;
    }
    const char *name = attr_str(c->node, "to", NULL);
    if (name != NULL) return named(name, to);
    int64_t number = attr_int(c->node, "to", DT_NONE);
    if (number < 0 || number >= DT_COUNT || (TYPES_CAST & dtype_bit((DType)number)) == 0)
        return err_set(ERR_UNSUPPORTED, "a cast to type number %" PRId64 " is not supported",
                       number);
    *to = (DType)number;
    return ERR_OK;
}

Err infer_cast(const OpCall *c, Tensor *out) {
    DType to = DT_NONE;
    TRY(infer_need(c->in[0], TYPES_CAST, "input"));
    TRY(infer_cast_to(c, &to));
    TRY(infer_same(c, out));
    out[0].dtype = to;
    return ERR_OK;
}
