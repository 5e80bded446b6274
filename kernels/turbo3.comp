// turbo3: four blocks of 32 elements, codes of 2 + 1 bits, one norm four times.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define KEY_BYTES 56u
#define QUADS 32u
#define LEVELS 8u
#define level(i) tables.turbo3_c[i]
#include "vulkan_score.glsl"

uint low[2], high;

void key_open(uint at, uint c)
{
	low[0] = load32(at + 14u * c + 2u);
	low[1] = load32(at + 14u * c + 6u);
	high = load32(at + 14u * c + 10u);
}

float code_level(uint bits, uint sign, uint i)
{
	return LEVEL((bits >> (2u * i)) & 3u | ((sign >> i) & 1u) << 2);
}

vec4 key_four(uint j)
{
	uint bits = low[j >> 2] >> (8u * (j & 3u)), sign = high >> (4u * j);

	return vec4(code_level(bits, sign, 0u), code_level(bits, sign, 1u),
		    code_level(bits, sign, 2u), code_level(bits, sign, 3u));
}

#define key_scale() 1.0
#define key_residual(at, i) vec4(0.0)
#define query_ready(lane)

float key_score(uint at, uint h, float sum)
{
	return sum * half_value(load16(at));
}
#include "vulkan_score_main.glsl"
