// Detectors and segmentation networks: the SSDs of MLPerf Inference 0.5, YOLO, U-Net and DeepLab
// v3.
#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

// SSD on MobileNet v1 at 300x300 and on ResNet-34 at 1200x1200 or 512x512. The outputs are class
// scores and box offsets per anchor, before non-maximum suppression.

// From batch x (anchors * values) x height x width to batch x all anchors x values.
static uint32_t by_anchor(NetBuilder *n, uint32_t x, int64_t values) {
    x = net_transpose(n, x, (int64_t[]){0, 2, 3, 1});
    return net_reshape(n, x, 3, (int64_t[]){0, -1, values});
}

static uint32_t extra(NetBuilder *n, int at, uint32_t x, NetConv down, NetConv next,
                      NetActivation act) {
    net_push_scope(n, "extras.%d", at);
    down.bias = next.bias = true;
    x = net_activation(n, act, net_conv(n, "0", x, down));
    x = net_activation(n, act, net_conv(n, "2", x, next));
    net_pop_scope(n);
    return x;
}

void zoo_ssd_mobilenet_v1(NetBuilder *n, const ZooOptions *o) {
    static const int64_t mid[4] = {256, 128, 128, 64}, out[4] = {512, 256, 256, 128};
    uint32_t             maps[6], scores[6], boxes[6];
    net_push_scope(n, "backbone");
    maps[1] = part_mobilenet_v1(n, part_image(n, o, 3, 300), &maps[0]);
    net_pop_scope(n);
    for (int i = 0; i < 4; i++) {
        NetConv down = {.out = mid[i]};
        NetConv next = {.out = out[i], .kernel = 3, .stride = 2, .same = true};
        maps[i + 2] = extra(n, i, maps[i + 1], down, next, NET_RELU6);
    }
    for (int i = 0; i < 6; i++) {
        int64_t anchors = i == 0 ? 3 : 6;
        NetConv scoring = {.out = 91 * anchors, .bias = true};
        NetConv placing = {.out = 4 * anchors, .bias = true};
        net_push_scope(n, "predictors.%d", i);
        scores[i] = by_anchor(n, net_conv(n, "classification", maps[i], scoring), 91);
        boxes[i] = by_anchor(n, net_conv(n, "regression", maps[i], placing), 4);
        net_pop_scope(n);
    }
    uint32_t all = net_activation(n, NET_SIGMOID, net_concat(n, "classes", scores, 6, 1));
    net_output(n, all, "scores");
    net_output(n, net_concat(n, "offsets", boxes, 6, 1), "boxes");
}

// Every head strides by 3: grids of 50, 25, 13, 7, 3 and 3 at 1200x1200.
static void ssd_resnet34(NetBuilder *n, const ZooOptions *o, int64_t size) {
    static const int64_t anchors[6] = {4, 6, 6, 6, 4, 4}, mid[5] = {256, 256, 128, 128, 128};
    static const int64_t out[5] = {512, 512, 256, 256, 256}, strides[5] = {2, 2, 2, 2, 1};
    uint32_t             maps[6], scores[6], boxes[6];
    net_push_scope(n, "model");
    maps[0] = part_resnet34_stride8(n, part_image(n, o, 3, size));
    net_pop_scope(n);
    for (int i = 0; i < 5; i++) {
        NetConv down = {.out = mid[i]};
        NetConv next = {.out = out[i], .kernel = 3, .stride = strides[i], .pad = i < 3};
        maps[i + 1] = extra(n, i, maps[i], down, next, NET_RELU);
    }
    for (int i = 0; i < 6; i++) {
        NetConv scoring = {
            .out = 81 * anchors[i], .kernel = 3, .stride = 3, .pad = 1, .bias = true};
        NetConv placing = {.out = 4 * anchors[i], .kernel = 3, .stride = 3, .pad = 1, .bias = true};
        net_push_scope(n, "heads.%d", i);
        scores[i] = net_conv(n, "conf", maps[i], scoring);
        scores[i] = net_reshape(n, scores[i], 3, (int64_t[]){0, 81, -1});
        boxes[i] = net_conv(n, "loc", maps[i], placing);
        boxes[i] = net_reshape(n, boxes[i], 3, (int64_t[]){0, 4, -1});
        net_pop_scope(n);
    }
    uint32_t all = net_concat(n, "classes", scores, 6, 2);
    all = net_softmax(n, net_transpose(n, all, (int64_t[]){0, 2, 1}));
    net_output(n, all, "scores");
    all = net_concat(n, "offsets", boxes, 6, 2);
    net_output(n, net_transpose(n, all, (int64_t[]){0, 2, 1}), "boxes");
}

void zoo_ssd_resnet34(NetBuilder *n, const ZooOptions *o) { ssd_resnet34(n, o, 1200); }

void zoo_ssd_resnet34_512(NetBuilder *n, const ZooOptions *o) { ssd_resnet34(n, o, 512); }

// Tiny YOLO v2 (Redmon and Farhadi 2016, the VOC configuration) and YOLO v3 (2018, COCO), as
// darknet's configuration files define them. The outputs are the raw grids: boxes, objectness,
// classes.

static uint32_t conv_bn_leaky(NetBuilder *n, int at, uint32_t x, NetConv c) {
    net_push_scope(n, "%d", at);
    c.pad = c.kernel / 2;
    x = net_activation(n, NET_LEAKY, net_batch_norm(n, "bn", net_conv(n, "conv", x, c), 1e-5f));
    net_pop_scope(n);
    return x;
}

static uint32_t head(NetBuilder *n, int at, uint32_t x, int64_t out) {
    net_push_scope(n, "%d", at);
    x = net_conv(n, "conv", x, (NetConv){.out = out, .bias = true});
    net_pop_scope(n);
    return x;
}

void zoo_tiny_yolo_v2(NetBuilder *n, const ZooOptions *o) {
    static const int64_t out[8] = {16, 32, 64, 128, 256, 512, 1024, 1024};
    NetPool              pool = {.kernel = 2, .stride = 2};
    uint32_t             x = part_image(n, o, 3, 416);
    for (int i = 0, at = 0; i < 8; i++, at++) {
        x = conv_bn_leaky(n, at, x, (NetConv){.out = out[i], .kernel = 3});
        if (i > 5) continue;
        if (i == 5) pool = (NetPool){.kernel = 2, .stride = 1, .same = true};
        x = net_max_pool(n, x, pool);
        at++;
    }
    net_output(n, head(n, 14, x, 125), "grid");  // 5 anchors x (20 classes + 4 + 1)
}

// Layers are numbered as in the configuration file, which counts shortcuts, routes and grids too.
static uint32_t darknet_stage(NetBuilder *n, int *at, uint32_t x, int64_t out, int repeats) {
    x = conv_bn_leaky(n, (*at)++, x, (NetConv){.out = out, .kernel = 3, .stride = 2});
    for (int i = 0; i < repeats; i++, *at += 3) {
        uint32_t y = conv_bn_leaky(n, *at, x, (NetConv){.out = out / 2, .kernel = 1});
        y = conv_bn_leaky(n, *at + 1, y, (NetConv){.out = out, .kernel = 3});
        x = net_add(n, x, y);
    }
    return x;
}

static uint32_t neck(NetBuilder *n, int at, uint32_t x, int64_t out) {  // five layers
    for (int i = 0; i < 5; i++)
        x = conv_bn_leaky(n, at + i, x,
                          i % 2 == 0 ? (NetConv){.out = out, .kernel = 1}
                                     : (NetConv){.out = 2 * out, .kernel = 3});
    return x;
}

static uint32_t grid(NetBuilder *n, int at, uint32_t x, int64_t out) {
    x = conv_bn_leaky(n, at, x, (NetConv){.out = out, .kernel = 3});
    return head(n, at + 1, x, 255);  // 3 anchors x (80 classes + 4 + 1)
}

static uint32_t widened(NetBuilder *n, int at, uint32_t x, int64_t out, uint32_t finer) {
    x = conv_bn_leaky(n, at, x, (NetConv){.out = out, .kernel = 1});
    net_push_scope(n, "%d", at + 1);
    uint32_t both[2] = {net_upsample(n, x), finer};
    x = net_concat(n, "concat", both, 2, 1);
    net_pop_scope(n);
    return x;
}

void zoo_yolo_v3(NetBuilder *n, const ZooOptions *o) {
    static const int repeats[5] = {1, 2, 8, 8, 4};
    uint32_t         x = part_image(n, o, 3, 416), stages[5];
    int              at = 1;
    x = conv_bn_leaky(n, 0, x, (NetConv){.out = 32, .kernel = 3});
    for (int i = 0; i < 5; i++) x = stages[i] = darknet_stage(n, &at, x, 64 << i, repeats[i]);
    x = neck(n, 75, x, 512);
    uint32_t coarse = grid(n, 80, x, 1024);
    x = neck(n, 87, widened(n, 84, x, 256, stages[3]), 256);
    uint32_t middle = grid(n, 92, x, 512);
    x = neck(n, 99, widened(n, 96, x, 128, stages[2]), 128);
    uint32_t fine = grid(n, 104, x, 256);
    net_output(n, coarse, "grid13");
    net_output(n, middle, "grid26");
    net_output(n, fine, "grid52");
}

// U-Net (Ronneberger et al. 2015, with the paper's sizes 572 and 388) and DeepLab v3 (Chen et al.
// 2017) on a dilated MobileNet v3 large, as in torchvision.

static uint32_t twice(NetBuilder *n, const char *name, uint32_t x, int64_t out) {
    NetConv c = {.out = out, .kernel = 3, .bias = true};
    net_push_scope(n, "%s", name);
    x = net_activation(n, NET_RELU, net_conv(n, "conv1", x, c));
    x = net_activation(n, NET_RELU, net_conv(n, "conv2", x, c));
    net_pop_scope(n);
    return x;
}

static uint32_t cropped(NetBuilder *n, uint32_t x, uint32_t like) {
    for (int32_t axis = 2; axis < 4; axis++) {
        int64_t size = net_dim(n, like, axis), from = (net_dim(n, x, axis) - size) / 2;
        x = net_slice(n, x, axis, from, from + size);
    }
    return x;
}

void zoo_unet(NetBuilder *n, const ZooOptions *o) {
    uint32_t x = part_image(n, o, 1, 572), left[4];
    for (int i = 0; i < 4; i++) {
        net_push_scope(n, "down%d", i + 1);
        left[i] = twice(n, "block", x, 64 << i);
        x = net_max_pool(n, left[i], (NetPool){.kernel = 2, .stride = 2});
        net_pop_scope(n);
    }
    x = twice(n, "bottom", x, 1024);
    for (int i = 3; i >= 0; i--) {
        net_push_scope(n, "up%d", i + 1);
        uint32_t up = net_conv_transpose(n, "up", x, (NetConv){.out = 64 << i, .kernel = 2});
        uint32_t both[2] = {cropped(n, left[i], up), up};
        x = twice(n, "block", net_concat(n, "concat", both, 2, 1), 64 << i);
        net_pop_scope(n);
    }
    net_output(n, net_conv(n, "classes", x, (NetConv){.out = 2, .bias = true}), "logits");
}

static uint32_t conv_bn_relu(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    net_push_scope(n, "%s", name);
    x = net_activation(n, NET_RELU, net_batch_norm(n, "1", net_conv(n, "0", x, c), 1e-5f));
    net_pop_scope(n);
    return x;
}

static uint32_t pyramid(NetBuilder *n, uint32_t x) {
    static const int64_t rates[3] = {12, 24, 36};
    static const char   *names[3] = {"convs.1", "convs.2", "convs.3"};
    uint32_t             parts[5];
    parts[0] = conv_bn_relu(n, "convs.0", x, (NetConv){.out = 256});
    for (int i = 0; i < 3; i++)
        parts[i + 1] =
            conv_bn_relu(n, names[i], x,
                         (NetConv){.out = 256, .kernel = 3, .pad = rates[i], .dilation = rates[i]});
    parts[4] = conv_bn_relu(n, "convs.4", net_global_pool(n, x), (NetConv){.out = 256});
    parts[4] = net_resize(n, parts[4], net_dim(n, x, 2), net_dim(n, x, 3));
    return conv_bn_relu(n, "project", net_concat(n, "concat", parts, 5, 1), (NetConv){.out = 256});
}

void zoo_deeplab_v3(NetBuilder *n, const ZooOptions *o) {
    net_push_scope(n, "backbone");
    uint32_t x = part_mobilenet_v3(n, part_image(n, o, 3, 520), 2);
    net_pop_scope(n);
    net_push_scope(n, "classifier");
    net_push_scope(n, "0");
    x = pyramid(n, x);
    net_pop_scope(n);
    x = conv_bn_relu(n, "1", x, (NetConv){.out = 256, .kernel = 3, .pad = 1});
    x = net_conv(n, "4", x, (NetConv){.out = 21, .bias = true});
    net_pop_scope(n);
    net_output(n, net_resize(n, x, 520, 520), "logits");
}
