// turbo3_tcq: a 9-bit window slides over the stream by 3 bits an element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define KEY_BYTES 52u
#define QUADS 32u
#define LEVELS 512u
#define level(i) tables.tcq_c[i]
#include "vulkan_score.glsl"

uint stream[4];

// 96 bits of steps and 6 of the window's tail; what lies behind them is not used.
void key_open(uint at, uint c)
{
	[[unroll]] for (uint i = 0u; i < 4u; i++)
		stream[i] = load32(at + 2u + 12u * c + 4u * i);
}

vec4 key_four(uint j)
{
	uint w = (12u * j) >> 5, shift = (12u * j) & 31u;
	uint bits = (stream[w] >> shift) | ((stream[w + 1u] << 1) << (31u - shift));

	return vec4(LEVEL(bits & 511u), LEVEL((bits >> 3) & 511u), LEVEL((bits >> 6) & 511u),
		    LEVEL((bits >> 9) & 511u));
}

#define key_scale() 1.0
#define key_residual(at, i) vec4(0.0)
#define query_ready(lane)

float key_score(uint at, uint h, float sum)
{
	return sum * half_value(load16(at));
}
#include "vulkan_score_main.glsl"
