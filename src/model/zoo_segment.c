// Networks that label every pixel: U-Net (Ronneberger et al. 2015, the paper's own 572 to 388) and
// DeepLab v3 (Chen et al. 2017) on a dilated MobileNet v3 large, as in torchvision.
#include "model/zoo.h"
#include "model/zoo_part.h"

static uint32_t twice(Net *n, const char *name, uint32_t x, int64_t out) {
    NetConv c = {.out = out, .kernel = 3, .bias = true};
    net_enter(n, "%s", name);
    x = net_act(n, NET_RELU, net_conv(n, "conv1", x, c));
    x = net_act(n, NET_RELU, net_conv(n, "conv2", x, c));
    net_leave(n);
    return x;
}

static uint32_t cropped(Net *n, uint32_t x, uint32_t like) {
    for (int32_t axis = 2; axis < 4; axis++) {
        int64_t size = net_dim(n, like, axis), from = (net_dim(n, x, axis) - size) / 2;
        x = net_slice(n, x, axis, from, from + size);
    }
    return x;
}

void zoo_unet(Net *n, const ZooOptions *o) {
    uint32_t x = part_image(n, o, 1, 572), left[4];
    for (int i = 0; i < 4; i++) {
        net_enter(n, "down%d", i + 1);
        left[i] = twice(n, "block", x, 64 << i);
        x = net_max_pool(n, left[i], (NetPool){.kernel = 2, .stride = 2});
        net_leave(n);
    }
    x = twice(n, "bottom", x, 1024);
    for (int i = 3; i >= 0; i--) {
        net_enter(n, "up%d", i + 1);
        uint32_t up = net_conv_transpose(n, "up", x, (NetConv){.out = 64 << i, .kernel = 2});
        uint32_t both[2] = {cropped(n, left[i], up), up};
        x = twice(n, "block", net_concat(n, "concat", both, 2, 1), 64 << i);
        net_leave(n);
    }
    net_output(n, net_conv(n, "classes", x, (NetConv){.out = 2, .bias = true}), "logits");
}

static uint32_t unit(Net *n, const char *name, uint32_t x, NetConv c) {
    net_enter(n, "%s", name);
    x = net_act(n, NET_RELU, net_bn(n, "1", net_conv(n, "0", x, c), 1e-5f));
    net_leave(n);
    return x;
}

static uint32_t pyramid(Net *n, uint32_t x) {
    static const int64_t rates[3] = {12, 24, 36};
    static const char   *names[3] = {"convs.1", "convs.2", "convs.3"};
    uint32_t             parts[5];
    parts[0] = unit(n, "convs.0", x, (NetConv){.out = 256});
    for (int i = 0; i < 3; i++)
        parts[i + 1] =
            unit(n, names[i], x,
                 (NetConv){.out = 256, .kernel = 3, .pad = rates[i], .dilation = rates[i]});
    parts[4] = unit(n, "convs.4", net_global_pool(n, x), (NetConv){.out = 256});
    parts[4] = net_resize(n, parts[4], net_dim(n, x, 2), net_dim(n, x, 3));
    return unit(n, "project", net_concat(n, "concat", parts, 5, 1), (NetConv){.out = 256});
}

void zoo_deeplab_v3(Net *n, const ZooOptions *o) {
    net_enter(n, "backbone");
    uint32_t x = part_mobilenet_v3(n, part_image(n, o, 3, 520), 2);
    net_leave(n);
    net_enter(n, "classifier");
    net_enter(n, "0");
    x = pyramid(n, x);
    net_leave(n);
    x = unit(n, "1", x, (NetConv){.out = 256, .kernel = 3, .pad = 1});
    x = net_conv(n, "4", x, (NetConv){.out = 21, .bias = true});
    net_leave(n);
    net_output(n, net_resize(n, x, 520, 520), "logits");
}
