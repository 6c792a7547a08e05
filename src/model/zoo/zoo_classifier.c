// Image classifiers as in torchvision: AlexNet (Krizhevsky 2014, one tower), VGG-16 (Simonyan and
// Zisserman 2014), SqueezeNet 1.1 (Iandola et al. 2016), DenseNet-121 (Huang et al. 2016) and
// ResNet (He et al. 2015; v1.5: the stride of a bottleneck is in its 3x3).
#include <stdio.h>

#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

static uint32_t conv_relu(NetBuilder *n, uint32_t x, int at, NetConv c) {
    char name[12];
    (void)snprintf(name, sizeof name, "%d", at);
    c.bias = true;
    return net_activation(n, NET_RELU, net_conv(n, name, x, c));
}

static void three_linear(NetBuilder *n, uint32_t x, const char *const names[3]) {
    x = net_flatten(n, x);
    net_push_scope(n, "classifier");
    x = net_activation(n, NET_RELU, net_linear(n, names[0], x, 4096));
    x = net_activation(n, NET_RELU, net_linear(n, names[1], x, 4096));
    x = net_linear(n, names[2], x, 1000);
    net_pop_scope(n);
    net_output(n, x, "logits");
}

void zoo_alexnet(NetBuilder *n, const ZooOptions *o) {
    NetPool  pool = {.kernel = 3, .stride = 2};
    uint32_t x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    x = conv_relu(n, x, 0, (NetConv){.out = 64, .kernel = 11, .stride = 4, .pad = 2});
    x = net_max_pool(n, x, pool);
    x = conv_relu(n, x, 3, (NetConv){.out = 192, .kernel = 5, .pad = 2});
    x = net_max_pool(n, x, pool);
    x = conv_relu(n, x, 6, (NetConv){.out = 384, .kernel = 3, .pad = 1});
    x = conv_relu(n, x, 8, (NetConv){.out = 256, .kernel = 3, .pad = 1});
    x = conv_relu(n, x, 10, (NetConv){.out = 256, .kernel = 3, .pad = 1});
    x = net_max_pool(n, x, pool);
    net_pop_scope(n);
    three_linear(n, x, (const char *const[]){"1", "4", "6"});
}

void zoo_vgg16(NetBuilder *n, const ZooOptions *o) {
    static const int64_t rows[5][2] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
    uint32_t             x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    for (int i = 0, at = 0; i < 5; i++, at++) {
        for (int k = 0; k < rows[i][1]; k++, at += 2)
            x = conv_relu(n, x, at, (NetConv){.out = rows[i][0], .kernel = 3, .pad = 1});
        x = net_max_pool(n, x, (NetPool){.kernel = 2, .stride = 2});
    }
    net_pop_scope(n);
    three_linear(n, x, (const char *const[]){"0", "3", "6"});
}

static uint32_t fire_part(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    c.bias = true;
    return net_activation(n, NET_RELU, net_conv(n, name, x, c));
}

static uint32_t fire(NetBuilder *n, uint32_t x, int at, int64_t squeeze, int64_t expand) {
    net_push_scope(n, "%d", at);
    x = fire_part(n, "squeeze", x, (NetConv){.out = squeeze});
    uint32_t parts[2];
    parts[0] = fire_part(n, "expand1x1", x, (NetConv){.out = expand});
    parts[1] = fire_part(n, "expand3x3", x, (NetConv){.out = expand, .kernel = 3, .pad = 1});
    x = net_concat(n, "concat", parts, 2, 1);
    net_pop_scope(n);
    return x;
}

void zoo_squeezenet1_1(NetBuilder *n, const ZooOptions *o) {
    static const int64_t rows[8][3] = {// index, squeezed, expanded each way
                                       {3, 16, 64},  {4, 16, 64},   {6, 32, 128},  {7, 32, 128},
                                       {9, 48, 192}, {10, 48, 192}, {11, 64, 256}, {12, 64, 256}};
    NetPool              pool = {.kernel = 3, .stride = 2, .ceil = true};
    uint32_t             x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    x = conv_relu(n, x, 0, (NetConv){.out = 64, .kernel = 3, .stride = 2});
    for (int i = 0; i < 8; i++) {
        if (i == 0 || i == 2 || i == 4) x = net_max_pool(n, x, pool);
        x = fire(n, x, (int)rows[i][0], rows[i][1], rows[i][2]);
    }
    net_pop_scope(n);
    net_push_scope(n, "classifier");
    x = conv_relu(n, x, 1, (NetConv){.out = 1000});
    x = net_flatten(n, net_global_pool(n, x));
    net_pop_scope(n);
    net_output(n, x, "logits");
}

static uint32_t batch_norm_relu(NetBuilder *n, const char *name, uint32_t x) {
    return net_activation(n, NET_RELU, net_batch_norm(n, name, x, 1e-5f));
}

static uint32_t dense_layer(NetBuilder *n, uint32_t x) {
    uint32_t y = net_conv(n, "conv1", batch_norm_relu(n, "norm1", x), (NetConv){.out = 128});
    y = net_conv(n, "conv2", batch_norm_relu(n, "norm2", y),
                 (NetConv){.out = 32, .kernel = 3, .pad = 1});
    uint32_t both[2] = {x, y};
    return net_concat(n, "concat", both, 2, 1);
}

static uint32_t transition(NetBuilder *n, uint32_t x) {
    x = net_conv(n, "conv", batch_norm_relu(n, "norm", x), (NetConv){.out = net_dim(n, x, 1) / 2});
    return net_avg_pool(n, x, (NetPool){.kernel = 2, .stride = 2});
}

void zoo_densenet121(NetBuilder *n, const ZooOptions *o) {
    static const int counts[4] = {6, 12, 24, 16};
    uint32_t         x = part_image(n, o, 3, 224);
    net_push_scope(n, "features");
    x = net_conv(n, "conv0", x, (NetConv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = net_max_pool(n, batch_norm_relu(n, "norm0", x),
                     (NetPool){.kernel = 3, .stride = 2, .pad = 1});
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < counts[i]; k++) {
            net_push_scope(n, "denseblock%d.denselayer%d", i + 1, k + 1);
            x = dense_layer(n, x);
            net_pop_scope(n);
        }
        if (i == 3) break;
        net_push_scope(n, "transition%d", i + 1);
        x = transition(n, x);
        net_pop_scope(n);
    }
    x = batch_norm_relu(n, "norm5", x);
    net_pop_scope(n);
    part_classifier(n, x, "classifier");
}

static const float epsilon = 1e-5f;

static uint32_t conv_bn(NetBuilder *n, const char *conv, const char *bn, uint32_t x, NetConv c) {
    return net_batch_norm(n, bn, net_conv(n, conv, x, c), epsilon);
}

static uint32_t shortcut(NetBuilder *n, uint32_t x, int64_t out, int64_t stride) {
    if (stride == 1 && net_dim(n, x, 1) == out) return x;
    net_push_scope(n, "downsample");
    x = conv_bn(n, "0", "1", x, (NetConv){.out = out, .stride = stride});
    net_pop_scope(n);
    return x;
}

static uint32_t basic(NetBuilder *n, uint32_t x, int64_t mid, int64_t stride) {
    NetConv  first = {.out = mid, .kernel = 3, .stride = stride, .pad = 1};
    NetConv  second = {.out = mid, .kernel = 3, .pad = 1};
    uint32_t y = net_activation(n, NET_RELU, conv_bn(n, "conv1", "bn1", x, first));
    y = conv_bn(n, "conv2", "bn2", y, second);
    return net_activation(n, NET_RELU, net_add(n, y, shortcut(n, x, mid, stride)));
}

static uint32_t bottleneck(NetBuilder *n, uint32_t x, int64_t mid, int64_t stride) {
    NetConv  middle = {.out = mid, .kernel = 3, .stride = stride, .pad = 1};
    uint32_t y = net_activation(n, NET_RELU, conv_bn(n, "conv1", "bn1", x, (NetConv){.out = mid}));
    y = net_activation(n, NET_RELU, conv_bn(n, "conv2", "bn2", y, middle));
    y = conv_bn(n, "conv3", "bn3", y, (NetConv){.out = 4 * mid});
    return net_activation(n, NET_RELU, net_add(n, y, shortcut(n, x, 4 * mid, stride)));
}

typedef uint32_t BlockFn(NetBuilder *n, uint32_t x, int64_t mid, int64_t stride);

static uint32_t stage(NetBuilder *n, BlockFn *block, uint32_t x, int index, int count,
                      int64_t stride) {
    for (int i = 0; i < count; i++) {
        net_push_scope(n, "layer%d.%d", index, i);
        x = block(n, x, (int64_t)32 << index, i == 0 ? stride : 1);
        net_pop_scope(n);
    }
    return x;
}

static uint32_t stem(NetBuilder *n, uint32_t x) {
    x = conv_bn(n, "conv1", "bn1", x, (NetConv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
    return net_max_pool(n, net_activation(n, NET_RELU, x),
                        (NetPool){.kernel = 3, .stride = 2, .pad = 1});
}

static void resnet(NetBuilder *n, const ZooOptions *o, BlockFn *block, const int counts[4]) {
    uint32_t x = stem(n, part_image(n, o, 3, 224));
    for (int i = 0; i < 4; i++) x = stage(n, block, x, i + 1, counts[i], i == 0 ? 1 : 2);
    part_classifier(n, x, "fc");
}

void zoo_resnet18(NetBuilder *n, const ZooOptions *o) { resnet(n, o, basic, (int[]){2, 2, 2, 2}); }
void zoo_resnet34(NetBuilder *n, const ZooOptions *o) { resnet(n, o, basic, (int[]){3, 4, 6, 3}); }
void zoo_resnet50(NetBuilder *n, const ZooOptions *o) {
    resnet(n, o, bottleneck, (int[]){3, 4, 6, 3});
}

uint32_t part_resnet34_stride8(NetBuilder *n, uint32_t x) {
    x = stage(n, basic, stem(n, x), 1, 3, 1);
    x = stage(n, basic, x, 2, 4, 2);
    return stage(n, basic, x, 3, 6, 1);
}
