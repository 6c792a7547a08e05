#include "model/fused.h"

#include <string.h>

#include "model/attr.h"

typedef struct Row {
    const char *name;
    FusedFn     fn;
    float       a, b;  // when the file gives none
} Row;

static const Row rows[] = {
    {"", FUSED_NONE, 0, 0},
    {"Relu", FUSED_RELU, 0, 0},
    {"Tanh", FUSED_TANH, 0, 0},
    {"Sigmoid", FUSED_SIGMOID, 0, 0},
    {"LeakyRelu", FUSED_LEAKY_RELU, 0.01F, 0},
    {"HardSigmoid", FUSED_HARD_SIGMOID, 0.2F, 0.5F},
    {"Clip", FUSED_CLIP, -3.402823466e38F, 3.402823466e38F},
};

// FusedConv lists the parameters, FusedGemm names them.
Err fused_read(const Node *n, Fused *out) {
    const char  *name = attr_str(n, "activation", "");
    uint32_t     have = 0;
    const float *params = attr_floats(n, "activation_params", &have);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *out = (Fused){rows[i].fn, attr_float(n, "activation_alpha", rows[i].a),
                       attr_float(n, "activation_beta", rows[i].b)};
        if (have > 0) out->a = params[0];
        if (have > 1) out->b = params[1];
        return ERR_OK;
    }
    return err_set(ERR_UNSUPPORTED, "activation '%.32s' is not known", name);
}
