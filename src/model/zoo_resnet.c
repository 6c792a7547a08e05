// ResNet (He et al. 2015) as in torchvision: the bottleneck's stride sits in its 3x3 (v1.5).
#include "model/zoo.h"
#include "model/zoo_part.h"

static const float epsilon = 1e-5f;

static uint32_t conv_bn(Net *n, const char *conv, const char *bn, uint32_t x, NetConv c) {
    return net_bn(n, bn, net_conv(n, conv, x, c), epsilon);
}

static uint32_t shortcut(Net *n, uint32_t x, int64_t out, int64_t stride) {
    if (stride == 1 && net_dim(n, x, 1) == out) return x;
    net_enter(n, "downsample");
    x = conv_bn(n, "0", "1", x, (NetConv){.out = out, .stride = stride});
    net_leave(n);
    return x;
}

static uint32_t basic(Net *n, uint32_t x, int64_t mid, int64_t stride) {
    NetConv  first = {.out = mid, .kernel = 3, .stride = stride, .pad = 1};
    NetConv  second = {.out = mid, .kernel = 3, .pad = 1};
    uint32_t y = net_act(n, NET_RELU, conv_bn(n, "conv1", "bn1", x, first));
    y = conv_bn(n, "conv2", "bn2", y, second);
    return net_act(n, NET_RELU, net_add(n, y, shortcut(n, x, mid, stride)));
}

static uint32_t bottleneck(Net *n, uint32_t x, int64_t mid, int64_t stride) {
    NetConv  middle = {.out = mid, .kernel = 3, .stride = stride, .pad = 1};
    uint32_t y = net_act(n, NET_RELU, conv_bn(n, "conv1", "bn1", x, (NetConv){.out = mid}));
    y = net_act(n, NET_RELU, conv_bn(n, "conv2", "bn2", y, middle));
    y = conv_bn(n, "conv3", "bn3", y, (NetConv){.out = 4 * mid});
    return net_act(n, NET_RELU, net_add(n, y, shortcut(n, x, 4 * mid, stride)));
}

typedef uint32_t BlockFn(Net *n, uint32_t x, int64_t mid, int64_t stride);

static uint32_t stage(Net *n, BlockFn *block, uint32_t x, int index, int count, int64_t stride) {
    for (int i = 0; i < count; i++) {
        net_enter(n, "layer%d.%d", index, i);
        x = block(n, x, (int64_t)32 << index, i == 0 ? stride : 1);
        net_leave(n);
    }
    return x;
}

static uint32_t stem(Net *n, uint32_t x) {
    x = conv_bn(n, "conv1", "bn1", x, (NetConv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
    return net_max_pool(n, net_act(n, NET_RELU, x), (NetPool){.kernel = 3, .stride = 2, .pad = 1});
}

static void resnet(Net *n, const ZooOptions *o, BlockFn *block, const int counts[4]) {
    uint32_t x = stem(n, part_image(n, o, 3, 224));
    for (int i = 0; i < 4; i++) x = stage(n, block, x, i + 1, counts[i], i == 0 ? 1 : 2);
    part_classify(n, x, "fc");
}

void zoo_resnet18(Net *n, const ZooOptions *o) { resnet(n, o, basic, (int[]){2, 2, 2, 2}); }
void zoo_resnet34(Net *n, const ZooOptions *o) { resnet(n, o, basic, (int[]){3, 4, 6, 3}); }
void zoo_resnet50(Net *n, const ZooOptions *o) { resnet(n, o, bottleneck, (int[]){3, 4, 6, 3}); }

uint32_t part_resnet34_stride8(Net *n, uint32_t x) {
    x = stage(n, basic, stem(n, x), 1, 3, 1);
    x = stage(n, basic, x, 2, 4, 2);
    return stage(n, basic, x, 3, 6, 1);
}
