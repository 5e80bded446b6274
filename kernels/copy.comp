// What benchmarks measure against: 16 bytes a lane and step, count of them in all.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 1) readonly buffer K { uvec4 rows[]; } k;
layout(std430, set = 0, binding = 3) writeonly buffer Out { uvec4 rows[]; } result;

void main()
{
	uint i = gl_WorkGroupID.x * 1024u + gl_LocalInvocationID.x;

	[[unroll]] for (uint n = 0u; n < 4u; n++)
		if (i + 256u * n < args.count)
			result.rows[i + 256u * n] = k.rows[i + 256u * n];
}
