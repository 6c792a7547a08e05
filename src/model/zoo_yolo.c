// Tiny YOLO v2 (Redmon and Farhadi 2016, the VOC configuration) and YOLO v3 (2018, COCO), as
// darknet's configuration files give them. They end with the raw grids: boxes, objectness, classes.
#include "model/zoo.h"
#include "model/zoo_part.h"

static uint32_t unit(Net *n, int at, uint32_t x, NetConv c) {
    net_enter(n, "%d", at);
    c.pad = c.kernel / 2;
    x = net_act(n, NET_LEAKY, net_bn(n, "bn", net_conv(n, "conv", x, c), 1e-5f));
    net_leave(n);
    return x;
}

static uint32_t head(Net *n, int at, uint32_t x, int64_t out) {
    net_enter(n, "%d", at);
    x = net_conv(n, "conv", x, (NetConv){.out = out, .bias = true});
    net_leave(n);
    return x;
}

void zoo_tiny_yolo_v2(Net *n, const ZooOptions *o) {
    static const int64_t out[8] = {16, 32, 64, 128, 256, 512, 1024, 1024};
    NetPool              pool = {.kernel = 2, .stride = 2};
    uint32_t             x = part_image(n, o, 3, 416);
    for (int i = 0, at = 0; i < 8; i++, at++) {
        x = unit(n, at, x, (NetConv){.out = out[i], .kernel = 3});
        if (i > 5) continue;
        if (i == 5) pool = (NetPool){.kernel = 2, .stride = 1, .same = true};
        x = net_max_pool(n, x, pool);
        at++;
    }
    net_output(n, head(n, 14, x, 125), "grid");  // 5 anchors of 20 classes, 4 edges, 1 objectness
}

// Layers are numbered as in the configuration file, where sums, joins and grids count as well.
static uint32_t darknet_stage(Net *n, int *at, uint32_t x, int64_t out, int repeats) {
    x = unit(n, (*at)++, x, (NetConv){.out = out, .kernel = 3, .stride = 2});
    for (int i = 0; i < repeats; i++, *at += 3) {
        uint32_t y = unit(n, *at, x, (NetConv){.out = out / 2, .kernel = 1});
        y = unit(n, *at + 1, y, (NetConv){.out = out, .kernel = 3});
        x = net_add(n, x, y);
    }
    return x;
}

static uint32_t neck(Net *n, int at, uint32_t x, int64_t out) {  // five layers
    for (int i = 0; i < 5; i++)
        x = unit(n, at + i, x,
                 i % 2 == 0 ? (NetConv){.out = out, .kernel = 1}
                            : (NetConv){.out = 2 * out, .kernel = 3});
    return x;
}

static uint32_t grid(Net *n, int at, uint32_t x, int64_t out) {
    x = unit(n, at, x, (NetConv){.out = out, .kernel = 3});
    return head(n, at + 1, x, 255);  // 3 anchors of 80 classes, 4 edges, 1 objectness
}

static uint32_t widened(Net *n, int at, uint32_t x, int64_t out, uint32_t finer) {
    x = unit(n, at, x, (NetConv){.out = out, .kernel = 1});
    net_enter(n, "%d", at + 1);
    uint32_t both[2] = {net_upsample(n, x), finer};
    x = net_concat(n, "concat", both, 2, 1);
    net_leave(n);
    return x;
}

void zoo_yolo_v3(Net *n, const ZooOptions *o) {
    static const int repeats[5] = {1, 2, 8, 8, 4};
    uint32_t         x = part_image(n, o, 3, 416), stages[5];
    int              at = 1;
    x = unit(n, 0, x, (NetConv){.out = 32, .kernel = 3});
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
