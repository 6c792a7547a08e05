// Zoo parts: what several networks share: image inputs, classifier ends and whole backbones.
#pragma once

#include "model/net_builder.h"
#include "model/zoo/zoo.h"

uint32_t part_image(NetBuilder *n, const ZooOptions *o, int64_t channels, int64_t size);
void part_classify(NetBuilder *n, uint32_t x, const char *name);  // pool, one linear, 1000 logits

// Squeeze and excitation: a gate per channel from the pooled image.
uint32_t part_squeeze_excite(NetBuilder *n, uint32_t x, int64_t squeezed, NetActivation inner,
                             NetActivation gate);

uint32_t part_resnet34_stride8(NetBuilder *n,
                               uint32_t    x);  // MLPerf's: three stages, the last stride 1
uint32_t part_mobilenet_v1(NetBuilder *n, uint32_t x, uint32_t *mid);  // *mid: block 11, stride 16
uint32_t part_mobilenet_v3(NetBuilder *n, uint32_t x, int64_t dilation);  // through the 1x1 to 960

// What the BERTs share. The mask is 0 where a token counts and -10000 where not, batch x 1 x 1 x T.
enum { PART_WORDS = 30522, PART_POSITIONS = 512 };
typedef struct PartTokens {
    uint32_t ids, types, mask;
    int64_t  sequence;
} PartTokens;
PartTokens part_tokens(NetBuilder *n, const ZooOptions *o);
uint32_t   part_positions(NetBuilder *n, int64_t sequence, int64_t hidden);
uint32_t   part_attention(NetBuilder *n, uint32_t query, uint32_t value, uint32_t mask,
                          int64_t heads);
