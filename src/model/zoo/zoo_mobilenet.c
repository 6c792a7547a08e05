// MobileNet v1, v2, v3 and EfficientNet B0. All but v1 consist of inverted residual blocks: 1x1
// expansion, depthwise filter, optional squeeze-and-excitation, 1x1 projection, addition.
#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

static uint32_t conv_bn(NetBuilder *n, int at, uint32_t x, NetConv c, float epsilon) {
    net_push_scope(n, "%d", at);
    x = net_batch_norm(n, "1", net_conv(n, "0", x, c), epsilon);
    net_pop_scope(n);
    return x;
}

// MobileNet v1 (Howard et al. 2017) with TensorFlow's padding.
static uint32_t v1_part(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    net_push_scope(n, "%s", name);
    x = net_activation(n, NET_RELU6, net_batch_norm(n, "bn", net_conv(n, "conv", x, c), 1e-3f));
    net_pop_scope(n);
    return x;
}

uint32_t part_mobilenet_v1(NetBuilder *n, uint32_t x, uint32_t *mid) {
    static const int64_t out[13] = {64,  128, 128, 256, 256,  512, 512,
                                    512, 512, 512, 512, 1024, 1024};
    static const int64_t strides[13] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    x = v1_part(n, "block0", x, (NetConv){.out = 32, .kernel = 3, .stride = 2, .same = true});
    for (int i = 0; i < 13; i++) {
        int64_t in = net_dim(n, x, 1);
        net_push_scope(n, "block%d", i + 1);
        x = v1_part(
            n, "depthwise", x,
            (NetConv){.out = in, .kernel = 3, .stride = strides[i], .groups = in, .same = true});
        x = v1_part(n, "pointwise", x, (NetConv){.out = out[i]});
        net_pop_scope(n);
        if (i == 10) *mid = x;
    }
    return x;
}

void zoo_mobilenet_v1(NetBuilder *n, const ZooOptions *o) {
    uint32_t mid = NO_VALUE;
    part_classifier(n, part_mobilenet_v1(n, part_image(n, o, 3, 224), &mid), "fc");
}

typedef struct Inverted {
    int64_t       kernel, expanded, out, stride, dilation, squeezed;
    NetActivation act, squeeze_act, gate;
    float         epsilon;
} Inverted;

static uint32_t inverted(NetBuilder *n, uint32_t x, Inverted b) {
    int64_t  in = net_dim(n, x, 1), reach = b.dilation * (b.kernel - 1) / 2;
    NetConv  filter = {.out = b.expanded,
                       .kernel = b.kernel,
                       .stride = b.stride,
                       .pad = reach,
                       .dilation = b.dilation,
                       .groups = b.expanded};
    int      at = 0;
    uint32_t y = x;
    if (b.expanded != in)
        y = net_activation(n, b.act, conv_bn(n, at++, y, (NetConv){.out = b.expanded}, b.epsilon));
    y = net_activation(n, b.act, conv_bn(n, at++, y, filter, b.epsilon));
    if (b.squeezed != 0) {
        net_push_scope(n, "%d", at++);
        y = part_squeeze_excite(n, y, b.squeezed, b.squeeze_act, b.gate);
        net_pop_scope(n);
    }
    y = conv_bn(n, at, y, (NetConv){.out = b.out}, b.epsilon);
    return b.stride == 1 && in == b.out ? net_add(n, x, y) : y;
}

// MobileNet v2 (Sandler et al. 2018), torchvision.
void zoo_mobilenet_v2(NetBuilder *n, const ZooOptions *o) {
    static const int64_t rows[7][4] = {// expansion, channels, repeats, stride
                                       {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                       {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    NetConv              first = {.out = 32, .kernel = 3, .stride = 2, .pad = 1};
    uint32_t             x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    x = net_activation(n, NET_RELU6, conv_bn(n, 0, x, first, 1e-5f));
    for (int i = 0, at = 1; i < 7; i++)
        for (int64_t k = 0; k < rows[i][2]; k++, at++) {
            net_push_scope(n, "%d.conv", at);
            x = inverted(n, x,
                         (Inverted){.kernel = 3,
                                    .expanded = rows[i][0] * net_dim(n, x, 1),
                                    .out = rows[i][1],
                                    .stride = k == 0 ? rows[i][3] : 1,
                                    .dilation = 1,
                                    .act = NET_RELU6,
                                    .epsilon = 1e-5f});
            net_pop_scope(n);
        }
    x = net_activation(n, NET_RELU6, conv_bn(n, 18, x, (NetConv){.out = 1280}, 1e-5f));
    net_pop_scope(n);
    part_classifier(n, x, "classifier.1");
}

// MobileNet v3 large (Howard et al. 2019), torchvision. With dilation the last stage keeps
// stride 16.
typedef struct V3Row {
    int64_t       kernel, expanded, out, stride;
    bool          gated;
    NetActivation act;
} V3Row;

static const V3Row v3_rows[15] = {
    {3, 16, 16, 1, false, NET_RELU},    {3, 64, 24, 2, false, NET_RELU},
    {3, 72, 24, 1, false, NET_RELU},    {5, 72, 40, 2, true, NET_RELU},
    {5, 120, 40, 1, true, NET_RELU},    {5, 120, 40, 1, true, NET_RELU},
    {3, 240, 80, 2, false, NET_HSWISH}, {3, 200, 80, 1, false, NET_HSWISH},
    {3, 184, 80, 1, false, NET_HSWISH}, {3, 184, 80, 1, false, NET_HSWISH},
    {3, 480, 112, 1, true, NET_HSWISH}, {3, 672, 112, 1, true, NET_HSWISH},
    {5, 672, 160, 2, true, NET_HSWISH}, {5, 960, 160, 1, true, NET_HSWISH},
    {5, 960, 160, 1, true, NET_HSWISH}};

static int64_t nearest8(int64_t x) {  // multiple of 8, at least 90% of x
    int64_t near = (x + 4) / 8 * 8 > 8 ? (x + 4) / 8 * 8 : 8;
    return 10 * near < 9 * x ? near + 8 : near;
}

uint32_t part_mobilenet_v3(NetBuilder *n, uint32_t x, int64_t dilation) {
    NetConv first = {.out = 16, .kernel = 3, .stride = 2, .pad = 1};
    net_push_scope(n, "features");
    x = net_activation(n, NET_HSWISH, conv_bn(n, 0, x, first, 1e-3f));
    for (int i = 0; i < 15; i++) {
        const V3Row *r = &v3_rows[i];
        bool         late = i >= 12 && dilation > 1;
        net_push_scope(n, "%d.block", i + 1);
        x = inverted(n, x,
                     (Inverted){.kernel = r->kernel,
                                .expanded = r->expanded,
                                .out = r->out,
                                .stride = late ? 1 : r->stride,
                                .dilation = late ? dilation : 1,
                                .squeezed = r->gated ? nearest8(r->expanded / 4) : 0,
                                .act = r->act,
                                .squeeze_act = NET_RELU,
                                .gate = NET_HSIGMOID,
                                .epsilon = 1e-3f});
        net_pop_scope(n);
    }
    x = net_activation(n, NET_HSWISH, conv_bn(n, 16, x, (NetConv){.out = 960}, 1e-3f));
    net_pop_scope(n);
    return x;
}

void zoo_mobilenet_v3_large(NetBuilder *n, const ZooOptions *o) {
    uint32_t x = part_mobilenet_v3(n, part_image(n, o, 3, 224), 1);
    x = net_flatten(n, net_global_pool(n, x));
    x = net_activation(n, NET_HSWISH, net_linear(n, "classifier.0", x, 1280));
    net_output(n, net_linear(n, "classifier.3", x, 1000), "logits");
}

// EfficientNet B0 (Tan and Le 2019), torchvision.
void zoo_efficientnet_b0(NetBuilder *n, const ZooOptions *o) {
    static const int64_t rows[7][5] = {// expansion, kernel, stride, channels, repeats
                                       {1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                                       {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                                       {6, 3, 1, 320, 1}};
    NetConv              first = {.out = 32, .kernel = 3, .stride = 2, .pad = 1};
    uint32_t             x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    x = net_activation(n, NET_SILU, conv_bn(n, 0, x, first, 1e-5f));
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < rows[i][4]; k++) {
            net_push_scope(n, "%d.%d.block", i + 1, k);
            x = inverted(n, x,
                         (Inverted){.kernel = rows[i][1],
                                    .expanded = rows[i][0] * net_dim(n, x, 1),
                                    .out = rows[i][3],
                                    .stride = k == 0 ? rows[i][2] : 1,
                                    .dilation = 1,
                                    .squeezed = net_dim(n, x, 1) / 4,
                                    .act = NET_SILU,
                                    .squeeze_act = NET_SILU,
                                    .gate = NET_SIGMOID,
                                    .epsilon = 1e-5f});
            net_pop_scope(n);
        }
    x = net_activation(n, NET_SILU, conv_bn(n, 8, x, (NetConv){.out = 1280}, 1e-5f));
    net_pop_scope(n);
    part_classifier(n, x, "classifier.1");
}
