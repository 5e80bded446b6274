/* The suites, byte for byte, in both programs. */
	.section .rodata
	.macro embed name, file
	.global \name, \name\()_end
	.balign 16
\name:
	.incbin "\file"
\name\()_end:
	.byte 0
	.endm

	embed suite_eliza_1, "fixtures/suites/eliza-1.json"
	embed suite_eliza_1_gemma, "fixtures/suites/eliza-1-gemma.json"
	embed suite_llama_cpp, "fixtures/suites/llama.cpp.json"

	.section .note.GNU-stack, "", %progbits
