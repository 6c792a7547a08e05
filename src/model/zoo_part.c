#include "model/zoo_part.h"

uint32_t part_image(Net *n, const ZooOptions *o, int64_t channels, int64_t size) {
    int64_t dims[4] = {o->batch, channels, size, size};
    return net_input(n, "image", DT_F32, 4, dims);
}

void part_classify(Net *n, uint32_t x, const char *name) {
    x = net_flatten(n, net_global_pool(n, x));
    net_output(n, net_linear(n, name, x, 1000), "logits");
}

uint32_t part_excite(Net *n, uint32_t x, int64_t squeezed, NetAct inner, NetAct gate) {
    NetConv  down = {.out = squeezed, .bias = true};
    NetConv  up = {.out = net_dim(n, x, 1), .bias = true};
    uint32_t s = net_act(n, inner, net_conv(n, "fc1", net_global_pool(n, x), down));
    return net_mul(n, x, net_act(n, gate, net_conv(n, "fc2", s, up)));
}
