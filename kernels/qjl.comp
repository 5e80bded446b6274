// qjl: 256 signs against the query's sketch.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define KEY_BYTES 34u
#define QUADS 64u
#define LEVELS 1u
#define level(i) 0.0
#include "vulkan_score.glsl"

uint bits;

void key_open(uint at, uint c)
{
	bits = load32(at + 4u * c);
}

vec4 key_four(uint j)
{
	return signs_of(bits >> (4u * j));
}

#define key_scale() 1.0
#define key_residual(at, i) vec4(0.0)
#define query_ready(lane)

float key_score(uint at, uint h, float sum)
{
	return QJL_SCALE * brain_value(load16(at + 32u)) * sum;
}
#include "vulkan_score_main.glsl"
