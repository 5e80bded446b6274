// Merges the parts of a head and transforms the sum back.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define LANES 128u
#define PART 132u // as in vulkan_fused.glsl
layout(local_size_x = 128) in;
layout(constant_id = 2) const uint POLAR = 0; // values are polar, else tbq3_0

layout(std430, set = 0, binding = 1) readonly buffer K { float parts[]; } k;
layout(std430, set = 0, binding = 3) writeonly buffer Out { float values[]; } result;

shared float s_y[LANES];

// An empty part has weight 0; a maximum of minus infinity is only theirs.
float part_weight(float most, float all)
{
	return most == uintBitsToFloat(0xff800000u) ? 0.0 : exp(most - all);
}

void main()
{
	uint lane = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, part;
	uint first = head * args.splits * PART, size = POLAR != 0u ? 128u : 32u;
	float most = uintBitsToFloat(0xff800000u), sum = 0.0, acc = 0.0, any = 0.0, w, a, b;

	for (uint i = 0u; i < args.splits; i++)
		most = max(most, k.parts[first + i * PART + 128u]);
	for (uint i = 0u; i < args.splits; i++) {
		part = first + i * PART;
		w = part_weight(k.parts[part + 128u], most);
		acc += w * k.parts[part + lane];
		sum += w * k.parts[part + 129u];
		any = max(any, k.parts[part + 130u]);
	}
	s_y[lane] = acc;
	for (uint m = 1u; m < size; m <<= 1) {
		barrier();
		a = s_y[lane];
		b = s_y[lane ^ m];
		barrier();
		s_y[lane] = (lane & m) == 0u ? a + b : b - a;
	}
	acc = POLAR != 0u ? s_y[lane] * (1.0 / 128.0) :
	      s_y[lane] * 0.1767766952966369 * sign_of(tables.signs32[0] >> (lane & 31u));
	result.values[args.out_at + head * 128u + lane] = any > 0.0 ? acc / sum : 0.0;
}
