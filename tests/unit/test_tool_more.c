/* Outputs of tools beside the recorded ones: what shells say, other versions, damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"

#define NONE REASON_NONE
#define UNKNOWN REASON_UNKNOWN_TOOL_FORMAT
#define ID "GPU-0000d200-1111-2222-3333-44444444d200"
#define LIST(name) "GPU 0: " name " (UUID: " ID ")\n"
#define HEAD "Testing 1 devices\n\nBackend 1/1: CUDA0\n  Device description: NVIDIA H200\n\n"
#define VULKAN "Vulkan Instance Version: 1.3.280\n\nDevices:\n========\n"
#define DEVICE(n, name, type, driver) \
	"GPU" n ":\n\tapiVersion         = 1.3.274\n\tvendorID           = 0x10de\n" \
	"\tdeviceType         = PHYSICAL_DEVICE_TYPE_" type "\n\tdeviceName         = " name "\n" \
	"\tdriverID           = DRIVER_ID_" driver "\n\tdriverInfo         = 1\n" \
	"\tconformanceVersion = 1.3.0.0\n\tdeviceUUID         = 00000000-0300-0000-0000-00000000000" n "\n"

#define ROCM "ROCk module is loaded\n==========\nHSA Agents\n==========\n" \
	AGENT("AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654 96-Core Processor", "CPU", "")
#define AGENT(name, marketing, type, more) "*******\nAgent 1\n*******\n  Name:                    " name "\n" \
	"  Uuid:                    GPU-XX\n  Marketing Name:          " marketing "\n" \
	"  Device Type:             " type "\n" more "  Pool Info:\n    Pool 1\n" \
	"      Segment:                 GLOBAL; FLAGS: COARSE GRAINED\n      Size:                    65536(0x10000) KB\n"
#define CHIP(id, bdf) "  Chip ID:                 " id "\n  BDFID:                   " bdf "\n  Domain:                  0\n"
#define ISA(name) "  ISA Info:\n    ISA 1\n      Name:                    amdgcn-amd-amdhsa--" name "\n" \
	"    ISA 2\n      Name:                    amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-\n"

#define HONEYKRISP(n) \
	"GPU" n ":\n\tapiVersion         = 1.4.313\n\tvendorID           = 0x10005\n" \
	"\tdeviceType         = PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU\n\tdeviceName         = Apple M2 Max (G14C B1)\n" \
	"\tdriverID           = DRIVER_ID_MESA_HONEYKRISP\n\tdriverName         = Honeykrisp\n"

static const struct row {
	enum tool_kind kind;
	int exit;
	enum reason reason;
	int devices;
	const char *text;
} rows[] = {
	/* a tool that is not there, in the words of each shell; one that can not be loaded */
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, "sh: 1: nvidia-smi: not found\n"},
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, "bash: line 1: nvidia-smi: command not found\n"},
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, ""},
	{TOOL_NVIDIA_SMI_L, 1, REASON_TOOL_MISSING, 0, "nvidia-smi : The term 'nvidia-smi' is not recognized as the name of a cmdlet\n"},
	{TOOL_NVIDIA_SMI_QUERY, 127, REASON_TOOL_MISSING, 0, "/bin/sh: nvidia-smi: not found\n"},
	{TOOL_ROCMINFO, 127, REASON_TOOL_MISSING, 0, "sh: 1: rocminfo: not found\n"},
	{TOOL_ROCMINFO, 127, REASON_TOOL_BROKEN, 0, "rocminfo: error while loading shared libraries: libhsa-runtime64.so.1: cannot open shared object file: No such file or directory\n"},
	{TOOL_VULKANINFO, 127, REASON_TOOL_MISSING, 0, "sh: 1: vulkaninfo: not found\n"},
	{TOOL_ADB_DEVICES, 1, REASON_TOOL_MISSING, 0, "'adb' is not recognized as an internal or external command,\r\n"},
	{TOOL_NVCC, 127, REASON_TOOL_MISSING, 0, "sh: 1: nvcc: not found\n"},
	{TOOL_NVCC, 126, REASON_TOOL_BROKEN, 0, "bash: /usr/local/cuda/bin/nvcc: Permission denied\n"},
	{TOOL_ROCMINFO, 126, REASON_TOOL_BROKEN, 0, "sh: 1: rocminfo: Exec format error\n"},
	{TOOL_NVCC, 1, REASON_TOOL_BROKEN, 0, "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.8, V12.8.61\nBuild cuda_12.8.r12.8/compiler.1_0\n"},
	/* one card, its line there twice */
	{TOOL_NVIDIA_SMI_L, 0, UNKNOWN, 2, LIST("NVIDIA H200") LIST("NVIDIA H200")},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 2, "name, uuid\nNVIDIA H200, " ID "\nNVIDIA H200, " ID "\n"},
	/* drivers of Vulkan by more than one sign */
	{TOOL_VULKANINFO, 0, NONE, 1, VULKAN HONEYKRISP("0")},
	{TOOL_VULKANINFO, 0, NONE, 2, VULKAN HONEYKRISP("0") DEVICE("1", "llvmpipe (LLVM 20.1.8, 128 bits)", "CPU", "MESA_LLVMPIPE")},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN "GPU0:\n\tvendorID           = 0x10005\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName         = NVIDIA H200\n\tdriverID           = DRIVER_ID_NVIDIA_PROPRIETARY\n"},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN "GPU0:\n\tvendorID           = 0x10de\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName         = A card\n\tdriverID           = DRIVER_ID_NEW\n\tdriverName         = llvmpipe\n"},
	/* phones */
	{TOOL_ADB_DEVICES, 0, REASON_EMULATOR, 1, "List of devices attached\nemulator-5554          device product:sdk_gphone64_arm64 model:sdk_gphone64 transport_id:1\n"},
	{TOOL_ADB_DEVICES, 0, NONE, 2, "List of devices attached\nemulator-5554\tdevice\nR5CT1234ABC\tdevice\n"},
	{TOOL_ADB_DEVICES, 1, REASON_TOOL_BROKEN, 1, "List of devices attached\nR5CT1234ABC\tdevice\n"},
	/* refusals */
	{TOOL_NVIDIA_SMI_L, 17, REASON_NO_PERMISSION, 0, "Failed to initialize NVML: GPU access blocked by the operating system\n"},
	{TOOL_NVIDIA_SMI_L, 12, REASON_DRIVER_MISSING_ON_HOST, 0, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed\n"},
	{TOOL_NVIDIA_SMI_L, 18, REASON_DRIVER_MISMATCH, 0, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 560.35\n"},
	{TOOL_ROCMINFO, 1, REASON_NO_DEVICE, 0, "WSL environment detected.\nhsa_init Failed, possibly no supported GPU devices\n"},
	{TOOL_ROCMINFO, 1, REASON_NO_PERMISSION, 0, "ROCk module is loaded\nUnable to open /dev/kfd read-write: No such file or directory\n"},
	{TOOL_VULKANINFO, 1, REASON_DRIVER_MISSING_ON_HOST, 0, "ERROR: [Loader Message] Code 0 : vkCreateInstance: Found no drivers!\nCannot create Vulkan instance.\n"},
	/* one column alone; sentences are not its rows */
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "compute_cap\n9.0\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 2, "9.0\r\n9.0\r\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "name\nNVIDIA H200\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "uuid\n" ID "\n"},
	/* names of drivers before R510 */
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "name\nA100-SXM4-40GB\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 2, "A100-SXM4-40GB\nA100-SXM4-40GB\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "name\nA40\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 2, "RTX A6000\nRTX A6000\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 0, "name\nA driver is needed\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "NVIDIA H200, 143771 MiB\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 2, "0, Tesla T4, 15360 MiB\n1, Tesla T4, 15360 MiB\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 0, "NVIDIA says so, and nothing more\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 0, "name\nUnable to det"},
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_DEVICE_FAULT, 0, "name\nUnable to determine the device handle for GPU0000:41:00.0: GPU is lost.\n"},
	{TOOL_NVIDIA_SMI_QUERY, 9, REASON_DRIVER_MISSING_ON_HOST, 0, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"},
	/* warnings beside rows, and errors beside rows */
	{TOOL_NVIDIA_SMI_QUERY, 14, NONE, 1, "index, name, uuid\n0, Tesla V100-SXM2-32GB, " ID "\nWARNING: infoROM is corrupted at gpu 0000:B3:00.0\n"},
	{TOOL_NVIDIA_SMI_QUERY, 15, REASON_DEVICE_FAULT, 1, "index, name, uuid\n0, NVIDIA H200, " ID "\nUnable to determine the device handle for GPU0000:41:00.0: GPU is lost.\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 1, "index, name, uuid\n0, NVIDIA H200, " ID "\n1, NVIDIA"},
	/* cells without facts */
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_DEVICE_FAULT, 1, "index, name, uuid\n0, [GPU is lost], [GPU is lost]\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_PROBE_UNREADABLE, 1, "index, name, uuid\n[Unknown Error], [Unknown Error], [Unknown Error]\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "\"index\",\"name\" ,\"uuid\"\n\"0\",\"NVIDIA H200\",\"" ID "\"\n"},
	/* kinds of Vulkan devices */
	{TOOL_VULKANINFO, 0, NONE, 2, VULKAN DEVICE("0", "NVIDIA H200", "DISCRETE_GPU", "NVIDIA_PROPRIETARY") DEVICE("1", "Odd", "OTHER", "NEW")},
	{TOOL_VULKANINFO, 0, REASON_NO_DEVICE, 1, VULKAN DEVICE("0", "Odd", "OTHER", "NEW")},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN DEVICE("0", "Gizmo", "DISCRETE_GPU", "MESA_LLVMPIPE")},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN DEVICE("0", "Microsoft Direct3D12 (Microsoft Basic Render Driver)", "CPU", "MESA_DOZEN")},
	{TOOL_VULKANINFO, 0, REASON_EMULATOR, 2, VULKAN DEVICE("0", "Gfxstream", "VIRTUAL_GPU", "NEW") DEVICE("1", "SwiftShader Device", "CPU", "GOOGLE_SWIFTSHADER")},
	/* sums that are not those of the rows */
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, HEAD "  ADD(type=f32): \033[1;32mOK\033(B\033[m\n  1/1 tests passed\n  Backend CUDA0: \033[1;32mOK\033(B\033[m\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  2/2 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): [ADD] NaN at index 3 (CUDA0=nan CPU=1)\n  1/1 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): OK\n  9/3 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: FAIL\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_OP_MISMATCH, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n0/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_SUMMARY_MISSING, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n"},
	/* heads of before October 2024 */
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, "Testing 2 backends\n\nBackend 1/2 (CPU)\n  Skipping\nBackend 2/2 (CUDA0)\n  Backend name: CUDA0\n  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n\n2/2 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_BACKEND_NOT_PRESENT, 0, "Testing 1 backends\n\nBackend 1/1 (CPU)\n  Skipping\n1/1 backends passed\nOK\n"},
	/* answers of probes that are none */
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":\"mismatch\",\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":803,\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 0, "{\"probe\":\"cuda\",\"schema\":1,\"error\":null,\"devices\":[1,null]}"},
	{TOOL_PROBE, 0, NONE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":null,\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	/* the words of shells in other languages, and of the system in place of the tool */
	{TOOL_NVIDIA_SMI_L, -1, REASON_TOOL_MISSING, 0, "bash: nvidia-smi: Kommando nicht gefunden.\n"},
	{TOOL_NVIDIA_SMI_L, -1, REASON_TOOL_MISSING, 0, "bash: nvidia-smi : commande introuvable\n"},
	{TOOL_ROCMINFO, 9009, REASON_TOOL_MISSING, 0, "Der Befehl \"rocminfo\" ist entweder falsch geschrieben oder\r\nkonnte nicht gefunden werden.\r\n"},
	{TOOL_VULKANINFO, -1073741515, REASON_TOOL_BROKEN, 0, ""},
	{TOOL_VULKANINFO, 139, REASON_PROBE_CRASHED, 0, "Segmentation fault (core dumped)\n"},
	/* nvidia-smi -L: what is cut is no id; many cards; other refusals */
	{TOOL_NVIDIA_SMI_L, 0, UNKNOWN, 0, "GPU 0: NVIDIA H200 (UUID: GPU-0000d200-1111-2222)\n"},
	{TOOL_NVIDIA_SMI_L, 0, UNKNOWN, 1, LIST("NVIDIA H200") "GPU 1: NVIDIA H2"},
	{TOOL_NVIDIA_SMI_L, 0, UNKNOWN, 1, LIST("NVIDIA H200") "GPU 1: NVIDIA H200 (UUID: GPU-0000d200-1111-2222-3333-44444444d201"},
	{TOOL_NVIDIA_SMI_L, 0, UNKNOWN, 0, "  MIG 1g.5gb      Device  0: (UUID: MIG-0000d200-1111-2222-3333-44444444d200)\n"},
	{TOOL_NVIDIA_SMI_L, 0, NONE, 2, LIST("NVIDIA A100-SXM4-40GB") "  MIG 1c.3g.20gb  Device  0: (UUID: MIG-GPU-0000d200-1111-2222-3333-44444444d200/2/0)\n"},
	{TOOL_NVIDIA_SMI_L, 15, REASON_DEVICE_FAULT, 0, "Unable to determine the device handle for GPU0000:65:00.0: Unknown Error\n"},
	{TOOL_NVIDIA_SMI_L, 15, REASON_DEVICE_FAULT, 0, "Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error\r\n"},
	{TOOL_NVIDIA_SMI_L, 9, REASON_DRIVER_MISSING_ON_HOST, 0, "Failed to initialize NVML: Driver Not Loaded\n"},
	{TOOL_NVIDIA_SMI_L, 0, NONE, 1, "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n" LIST("Tesla T4")},
	/* --query-gpu: cut in its last cell; columns in any order, units or none */
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "uuid, compute_cap, name\n" ID ", 12.0, NVIDIA GeForce RTX 5090\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA GB10, [N/A], [N/A]\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "index, name, uuid, ecc.errors.uncorrected.aggregate.total\n0, NVIDIA L40S, " ID ", 0\n"},
	{TOOL_NVIDIA_SMI_QUERY, 6, REASON_NO_DEVICE, 0, "No devices were found\n"},
	{TOOL_NVIDIA_SMI_QUERY, 18, REASON_DRIVER_MISMATCH, 0, "Failed to initialize NVML: Driver/library version mismatch\n"},
	{TOOL_NVIDIA_SMI_QUERY, 2, UNKNOWN, 0, "Field \"compute_cap\" is not a valid field to query.\n\n"},
	/* nvcc of 10 and before ends behind its version; of 11 and later it does not */
	{TOOL_NVCC, 0, NONE, 0, "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2019 NVIDIA Corporation\nBuilt on Wed_Oct_23_19:24:38_PDT_2019\nCuda compilation tools, release 10.2, V10.2.89"},
	{TOOL_NVCC, 0, NONE, 0, "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2019 NVIDIA Corporation\nBuilt on Wed_Oct_23_19:24:38_PDT_2019\nCuda compilation tools, release 10.2, V10.2.89\n"},
	{TOOL_NVCC, 0, UNKNOWN, 0, "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.1"},
	{TOOL_NVCC, 0, UNKNOWN, 0, "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 10."},
	{TOOL_NVCC, 1, UNKNOWN, 0, "nvcc fatal   : No input files specified; use option --help for more information\n"},
	/* rocminfo */
	{TOOL_ROCMINFO, 1, REASON_NO_PERMISSION, 0, "\033[37mROCk module is loaded\033[0m\n\033[31mroot is not member of \"video\" group, the default DRM access group. Users must be a member of the \"video\" group or another\nDRM access group in order for ROCm applications to run successfully.\033[0m\n"},
	{TOOL_ROCMINFO, 1, REASON_NO_PERMISSION, 0, "hsa api call failure at: /src/rocminfo/rocminfo.cc:1306\nCall returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. This error may also occur when the core runtime library needs to spawn threads or create internal OS-specific events.\n"},
	{TOOL_ROCMINFO, 0, UNKNOWN, 0, ROCM AGENT("gfx942", "AMD Instinct MI355X", "GPU", "")},
	{TOOL_ROCMINFO, 0, REASON_NO_DEVICE, 0, ROCM AGENT("aie2", "AIE-ML", "DSP", "") "*** Done ***\n"},
	/* Vulkan played over another interface, or behind a virtual machine */
	{TOOL_VULKANINFO, 0, REASON_WRONG_DEVICE, 1, VULKAN DEVICE("0", "Apple M4", "INTEGRATED_GPU", "MESA_KOSMICKRISP")},
	{TOOL_VULKANINFO, 0, REASON_WRONG_DEVICE, 1, VULKAN DEVICE("0", "Microsoft Direct3D12 (NVIDIA GeForce RTX 4090)", "DISCRETE_GPU", "MESA_DOZEN")},
	{TOOL_VULKANINFO, 0, REASON_EMULATOR, 1, VULKAN DEVICE("0", "Virtio-GPU Venus (NVIDIA H200)", "DISCRETE_GPU", "MESA_VENUS")},
	{TOOL_VULKANINFO, 0, REASON_EMULATOR, 1, VULKAN DEVICE("0", "Virtio-GPU GFXStream (Mali-G715)", "INTEGRATED_GPU", "MESA_GFXSTREAM")},
	{TOOL_VULKANINFO, 0, NONE, 1, VULKAN DEVICE("0", "GRID A100D-40C", "VIRTUAL_GPU", "NVIDIA_PROPRIETARY")},
	{TOOL_VULKANINFO, 0, UNKNOWN, 1, VULKAN "GPU0:\n\tapiVersion         = 1.3.274\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCR\n\tdeviceName         = NVIDIA H200\n\tdriverID           = DRIVER_ID_NVIDIA_PROPRIETARY\n"},
	/* what a comparison says in front of its row; no case is no failure */
	{TOOL_TEST_BACKEND_OPS, 1, REASON_OP_MISMATCH, 0, HEAD "[ADD] NMSE = 0.473073968 > 0.000000100   ADD(type=f32): FAIL\n  0/1 tests passed\n  Backend CUDA0: FAIL\n0/1 backends passed\nFAIL\n"},
	{TOOL_TEST_BACKEND_OPS, 1, REASON_OP_MISMATCH, 0, HEAD "[ADD] NMSE = 0.473073968 > 0.000000100   ADD(type=f32): FAIL\n"},
	{TOOL_TEST_BACKEND_OPS, 1, REASON_NO_CASE_EXECUTED, 0, HEAD "  ADD(type=f32): not supported [CUDA0]\n  0/0 tests passed\n  Backend CUDA0: FAIL\n0/1 backends passed\nFAIL\n"},
	{TOOL_TEST_BACKEND_OPS, 139, REASON_PROBE_CRASHED, 0, HEAD "  ADD(type=f32): OK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_SUMMARY_MISSING, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\n"},
	{TOOL_TEST_BACKEND_OPS, 134, REASON_OP_MISMATCH, 0, HEAD "  ADD(type=f32): FAIL\n"},
	/* phones */
	{TOOL_ADB_DEVICES, 0, REASON_NO_PERMISSION, 1, "List of devices attached\n????????????\tno permissions\n\n"},
	{TOOL_ADB_DEVICES, 0, REASON_NO_PERMISSION, 1, "List of devices attached\n1fXXXX9        no permissions (missing udev rules? user is in the plugdev group); see [http://developer.android.com/tools/device.html] usb:1-2 transport_id:4\n"},
	{TOOL_ADB_DEVICES, 0, REASON_DEVICE_OFFLINE, 1, "List of devices attached\n1fXXXX9        sideload usb:1-2 transport_id:4\n"},
	{TOOL_ADB_DEVICES, 0, REASON_DEVICE_OFFLINE, 1, "List of devices attached\n1fXXXX9        recovery product:p model:m device:d transport_id:4\n"},
	{TOOL_ADB_DEVICES, 0, NONE, 1, "List of devices attached\n192.168.1.20:5555      device product:p model:SM_S918B device:dm3q transport_id:2\n"},
	{TOOL_ADB_DEVICES, 0, NONE, 1, "List of devices attached \nadb server version (32) doesn't match this client (36); killing...\n* daemon started successfully *\n1A2B3C\tdevice\n\n"},
	{TOOL_ADB_DEVICES, 0, NONE, 2, "List of devices attached\n1A2B3C offline transport_id:1\n1A2B3D device product:p model:Pixel_8 device:d transport_id:3\n"},
	{TOOL_ADB_DEVICES, 1, REASON_TOOL_BROKEN, 0, "* daemon not running; starting now at tcp:5037\nADB server didn't ACK\n* failed to start daemon\nerror: cannot connect to daemon\n"},
	/* a phone found over the air a second time */
	{TOOL_ADB_DEVICES, 0, NONE, 1, "List of devices attached\nadb-1A2B3C-xyz (2)._adb-tls-connect._tcp device product:p model:Pixel_8 device:d transport_id:3\n"},
	{TOOL_ADB_DEVICES, 0, REASON_DEVICE_OFFLINE, 1, "List of devices attached\nadb-1A2B3C-xyz._adb-tls-connect._tcp offline transport_id:3\n"},
};

static const struct tool_answer *
answer(enum tool_kind k, const char *text, size_t len, int exit)
{
	static struct tool_answer a;

	tool_parse(k, text, len, exit, &a);
	return &a;
}

static void
outputs_that_nobody_recorded_are_concluded_right(void **state)
{
	const struct tool_answer *a;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		a = answer(rows[i].kind, rows[i].text, strlen(rows[i].text), rows[i].exit);
		if (a->reason != rows[i].reason || a->count != rows[i].devices)
			fail_msg("row %zu: wanted %s and %d devices, got %s and %d (%s)\n%s", i,
				reason_name(rows[i].reason), rows[i].devices, reason_name(a->reason), a->count,
				a->detail, rows[i].text);
	}
}

static void
a_column_that_is_new_to_us_makes_no_row_of_the_header(void **state)
{
	static const char text[] = "index, name, uuid, display_active, encoder.stats.sessionCount, "
		"compute_mode, mig.mode.current\n0, NVIDIA H200, " ID ", Enabled, 0, Prohibited, Disabled\n";
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_QUERY, text, sizeof text - 1, 0);

	(void)state;
	assert_int_equal(a->count, 1);
	assert_string_equal(a->device[0].mig_mode, "disabled");
	assert_string_equal(a->device[0].compute_mode, "Prohibited");
}

static void
a_performance_state_is_no_name(void **state)
{
	static const char text[] = "P0, Default, NVIDIA H200, " ID "\n";
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_QUERY, text, sizeof text - 1, 0);

	(void)state;
	assert_string_equal(a->device[0].name, "NVIDIA H200");
	assert_string_equal(a->device[0].compute_mode, "Default");
}

static void
virtual_profiles_are_known_in_every_tool(void **state)
{
	static const char list[] = LIST("NVIDIA A100-1-5CME");
	static const char vulkan[] = VULKAN DEVICE("0", "GRID A100D-40C", "DISCRETE_GPU", "NVIDIA_PROPRIETARY");

	(void)state;
	assert_true(answer(TOOL_NVIDIA_SMI_L, list, sizeof list - 1, 0)->device[0].vgpu);
	assert_true(answer(TOOL_VULKANINFO, vulkan, sizeof vulkan - 1, 0)->device[0].vgpu);
}

/* Cards of the field: name, architecture, place and kind of the first. */
static void
cards_of_the_field_are_read_as_a_person_reads_them(void **state)
{
	static const struct {
		enum tool_kind kind;
		const char *text;
		int count;
		const char *name, *arch, *pci;
		enum tool_type type;
		bool vgpu;
	} machines[] = {
		{TOOL_NVIDIA_SMI_L, "GPU 0: Orin (nvgpu) (UUID: 54d0709b-558d-5a59-9c65-0c5fc14a21a4)\n", 1,
			"Orin (nvgpu)", "", "", TYPE_DISCRETE, false},
		{TOOL_NVIDIA_SMI_L, "GPU 0: NVIDIA Thor  (UUID: 54d0709b-558d-5a59-9c65-0c5fc14a21a4)\n", 1,
			"NVIDIA Thor", "", "", TYPE_DISCRETE, false},
		{TOOL_NVIDIA_SMI_L, LIST("NVIDIA GH200 480GB"), 1, "NVIDIA GH200 480GB", "", "", TYPE_DISCRETE, false},
		{TOOL_NVIDIA_SMI_L, LIST("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"), 1,
			"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "", "", TYPE_DISCRETE, false},
		{TOOL_NVIDIA_SMI_L, LIST("NVIDIA B200-180C"), 1, "NVIDIA B200-180C", "", "", TYPE_DISCRETE, true},
		{TOOL_NVIDIA_SMI_QUERY, "0, NVIDIA B200, " ID ", 00000000:1B:00.0, 570.86.15, 10.0, 183359\n", 1,
			"NVIDIA B200", "10.0", "0000:1b:00.0", TYPE_DISCRETE, false},
		{TOOL_NVIDIA_SMI_QUERY, "name, compute_cap, pci.bus_id\r\nTesla V100-SXM2-32GB, 7.0, 00000001:00:00.0\r\n", 1,
			"Tesla V100-SXM2-32GB", "7.0", "0001:00:00.0", TYPE_DISCRETE, false},
		{TOOL_ROCMINFO, ROCM AGENT("gfx950", "AMD Instinct MI355X", "GPU", CHIP("30115(0x75a3)", "29952") ISA("gfx950:sramecc+:xnack-"))
			"*** Done ***\n", 1, "AMD Instinct MI355X", "gfx950", "0000:75:00.0", TYPE_DISCRETE, false},
		{TOOL_ROCMINFO, ROCM AGENT("gfx942", "AMD Instinct MI300A", "GPU", CHIP("29856(0x74a0)", "256") "  Memory Properties:       APU\n" ISA("gfx942:sramecc+:xnack-"))
			"*** Done ***\n", 1, "AMD Instinct MI300A", "gfx942", "0000:01:00.0", TYPE_INTEGRATED, false},
		{TOOL_ROCMINFO, ROCM AGENT("gfx1151", "Radeon 8060S Graphics", "GPU", CHIP("5510(0x1586)", "50432") ISA("gfx1151"))
			AGENT("aie2", "AIE-ML", "DSP", "") "*** Done ***             \n", 1, "Radeon 8060S Graphics", "gfx1151",
			"0000:c5:00.0", TYPE_INTEGRATED, false},
		{TOOL_ROCMINFO, ROCM AGENT("gfx906", "AMD Radeon VII", "GPU", CHIP("26287(0x66af)", "2816") ISA("gfx906:sramecc-:xnack-"))
			"*** Done ***\n", 1, "AMD Radeon VII", "gfx906", "0000:0b:00.0", TYPE_DISCRETE, false},
		{TOOL_VULKANINFO, VULKAN DEVICE("0", "Apple M1 (G13G B1)", "INTEGRATED_GPU", "MESA_HONEYKRISP")
			DEVICE("1", "llvmpipe (LLVM 19.1.7, 128 bits)", "CPU", "MESA_LLVMPIPE"), 2, "Apple M1 (G13G B1)", "", "",
			TYPE_INTEGRATED, false},
		{TOOL_VULKANINFO, VULKAN DEVICE("0", "PowerVR Rogue GE8320", "INTEGRATED_GPU", "IMAGINATION_PROPRIETARY"), 1,
			"PowerVR Rogue GE8320", "", "", TYPE_INTEGRATED, false},
		{TOOL_VULKANINFO, VULKAN DEVICE("0", "V3D 7.1.7", "INTEGRATED_GPU", "MESA_V3DV"), 1, "V3D 7.1.7", "", "",
			TYPE_INTEGRATED, false},
		/* of 2020: numbers beside the version, the kind without its prefix, no driver id before 1.2 */
		{TOOL_VULKANINFO, VULKAN "GPU0:\n\tapiVersion     = 4198582 (1.1.182)\n\tdriverVersion  = 1 (0x0001)\n"
			"\tvendorID       = 0x13b5\n\tdeviceID       = 0x72120000\n\tdeviceType     = INTEGRATED_GPU\n"
			"\tdeviceName     = Mali-G76\n", 1, "Mali-G76", "", "", TYPE_INTEGRATED, false},
	};
	const struct tool_answer *a;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(machines); i++) {
		a = answer(machines[i].kind, machines[i].text, strlen(machines[i].text), 0);
		if (a->reason != NONE || a->count != machines[i].count || strcmp(a->device[0].name, machines[i].name) != 0 ||
		    strcmp(a->device[0].arch, machines[i].arch) != 0 || strcmp(a->device[0].pci, machines[i].pci) != 0 ||
		    a->device[0].type != machines[i].type || a->device[0].vgpu != machines[i].vgpu ||
		    a->device[0].software || a->device[0].chip_differs)
			fail_msg("machine %zu (%s): %s %s, %d devices, %s, %s, %s, type %d", i, machines[i].name,
				reason_name(a->reason), a->detail, a->count, a->device[0].name, a->device[0].arch,
				a->device[0].pci, (int)a->device[0].type);
	}
}

static void
a_lone_enabled_is_no_mode_of_slices(void **state)
{
	static const char bare[] = "0, NVIDIA H200, " ID ", Enabled\n";
	static const char named[] = "index, name, uuid, mig.mode.current\n0, NVIDIA H200, " ID ", Enabled\n";
	static const char cut[] = "index, name, uuid, compute_mode\n0, NVIDIA H200, " ID ", Prohib";

	(void)state;
	assert_string_equal(answer(TOOL_NVIDIA_SMI_QUERY, bare, sizeof bare - 1, 0)->device[0].mig_mode, "");
	assert_string_equal(answer(TOOL_NVIDIA_SMI_QUERY, named, sizeof named - 1, 0)->device[0].mig_mode, "enabled");
	assert_string_equal(answer(TOOL_NVIDIA_SMI_QUERY, cut, sizeof cut - 1, 0)->device[0].compute_mode, "");
}

static void
nvcc_without_its_last_end_of_line_tells_the_release(void **state)
{
	static const char text[] = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 10.2, V10.2.8";

	(void)state;
	assert_string_equal(answer(TOOL_NVCC, text, sizeof text - 1, 0)->version, "10.2");
}

/* Graphics inside of processors have none, and each says so in its own way. */
static void
an_id_of_no_use_is_no_id(void **state)
{
	static const char *const ids[] = {"GPU-XX", "GPU-ffffffffffffffff", "GPU-0000000000000000"};
	static const char text[] = ROCM AGENT("gfx1151", "AMD Radeon 8060S Graphics", "GPU", CHIP("5510(0x1586)", "50688")) "*** Done ***\n";
	const struct tool_answer *a;
	char copy[4096], *at;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(ids); i++) {
		at = strstr(text, "gfx1151");
		assert_non_null(at);
		at = strstr(at, "GPU-XX");
		assert_non_null(at);
		snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, ids[i], at + strlen("GPU-XX"));
		a = answer(TOOL_ROCMINFO, copy, strlen(copy), 0);
		assert_int_equal(a->reason, NONE);
		assert_string_equal(a->device[0].uuid, "");
	}
}

static void
the_name_of_a_driver_has_one_form(void **state)
{
	static const char old[] = VULKAN DEVICE("0", "NVIDIA H200", "DISCRETE_GPU", "NVIDIA_PROPRIETARY_KHR");

	(void)state;
	assert_string_equal(answer(TOOL_VULKANINFO, old, sizeof old - 1, 0)->device[0].driver_id, "NVIDIA_PROPRIETARY");
}

/* Cards of 16 sockets, each in seven slices. */
static void
sixteen_cards_of_seven_slices_fit(void **state)
{
	static char text[32768];
	size_t used = 0;
	int i, k;

	(void)state;
	for (i = 0; i < 16; i++) {
		used += (size_t)snprintf(text + used, sizeof text - used,
			"GPU %d: NVIDIA H200 (UUID: GPU-0000d200-1111-2222-3333-4444444400%02d)\n", i, i);
		for (k = 0; k < 7; k++)
			used += (size_t)snprintf(text + used, sizeof text - used, "  MIG 1g.18gb     Device  %d: "
				"(UUID: MIG-0000d200-1111-2222-3333-444444440%02d%d)\n", k, i, k);
	}
	assert_int_equal(answer(TOOL_NVIDIA_SMI_L, text, used, 0)->reason, NONE);
	assert_int_equal(answer(TOOL_NVIDIA_SMI_L, text, used, 0)->count, 128);
}

/* BR-004: a harness that ends well and says that it saw no GPU. */
static void
words_of_a_tool_that_saw_no_gpu_beat_its_exit_code(void **state)
{
#define SKIPPED "Testing 1 devices\n\nBackend 1/1: CPU\n  Skipping\n1/1 backends passed\nOK\n"
	static const char *const texts[] = {
		"[RESULT] [  1234.567890] No AMD compatible GPU found!\n",
		"ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device is detected\n" SKIPPED,
		"ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n" SKIPPED,
		"ggml_vulkan: No devices found.\n" SKIPPED,
	};
	const struct tool_answer *a;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		a = answer(TOOL_TEST_BACKEND_OPS, texts[i], strlen(texts[i]), 0);
		assert_int_equal(a->reason, REASON_TOOL_SAW_NO_GPU);
		assert_non_null(strstr(texts[i], a->detail));
	}
	assert_string_equal(a->note[0], "CPU was skipped");
	a = answer(TOOL_TEST_BACKEND_OPS, SKIPPED, strlen(SKIPPED), 0);
	assert_int_equal(a->reason, REASON_BACKEND_NOT_PRESENT);
}

/* Refusals of recorded hosts: no damaged byte makes facts of them. */
static void
no_damaged_byte_makes_a_refusal_good(void **state)
{
	static const struct {
		const char *file;
		enum tool_kind kind;
		int exit;
	} bad[] = {
		{"nvidia-smi-L/driver-library-mismatch.txt", TOOL_NVIDIA_SMI_L, 18},
		{"nvidia-smi-L/driver-not-running.txt", TOOL_NVIDIA_SMI_L, 9},
		{"nvidia-smi-L/gpu-lost.txt", TOOL_NVIDIA_SMI_L, 15},
		{"nvidia-smi-L/no-devices.txt", TOOL_NVIDIA_SMI_L, 6},
		{"nvidia-smi-query/field-not-valid.txt", TOOL_NVIDIA_SMI_QUERY, 2},
		{"nvidia-smi-L/driver-not-running.txt", TOOL_NVIDIA_SMI_QUERY, 9},
		{"rocminfo/kfd-permission-denied.txt", TOOL_ROCMINFO, 1},
		{"rocminfo/module-not-loaded-ansi.txt", TOOL_ROCMINFO, 1},
		{"rocminfo/cpu-only-agents.txt", TOOL_ROCMINFO, 0},
		{"vulkaninfo-summary/llvmpipe-only.txt", TOOL_VULKANINFO, 0},
		{"vulkaninfo-summary/no-driver.txt", TOOL_VULKANINFO, 1},
		{"vulkaninfo-summary/swiftshader.txt", TOOL_VULKANINFO, 0},
		{"test-backend-ops/backend-absent-ok.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/only-cpu-skipped.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/vulkan-all-not-supported.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/cuda-one-fail.txt", TOOL_TEST_BACKEND_OPS, 1},
		/* the exit code is not known, or lies */
		{"test-backend-ops/cuda-one-fail.txt", TOOL_TEST_BACKEND_OPS, -1},
		{"rocminfo/kfd-invalid-argument.txt", TOOL_ROCMINFO, -1},
		{"vulkaninfo-summary/moltenvk.txt", TOOL_VULKANINFO, 0},
		{"vulkaninfo-summary/enumerate-failed-wsl-dzn.txt", TOOL_VULKANINFO, -1},
		{"nvidia-smi-query/gpu-requires-reset.txt", TOOL_NVIDIA_SMI_QUERY, 0},
	};
	static const char bytes[] = {'\0', '\n', ' ', '1', 'G', '=', '\x1b'};
	static const int flips[] = {0x01, 0x02, 0x20, 0x80};
	char path[256], *text = NULL, was;
	size_t i, k, n, len;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		snprintf(path, sizeof path, "fixtures/probes/%s", bad[i].file);
		assert_int_equal(plat_read_file(path, TOOL_MAX_BYTES, &text, &len, NULL), 0);
		for (n = 0; n < len; n++) {
			was = text[n];
			for (k = 0; k < sizeof bytes + str_count(flips); k++) {
				text[n] = k < sizeof bytes ? bytes[k] : (char)(was ^ flips[k - sizeof bytes]);
				if (answer(bad[i].kind, text, len, bad[i].exit)->reason == NONE)
					fail_msg("%s is good with byte %zu as 0x%02x", bad[i].file, n, (unsigned)(uint8_t)text[n]);
			}
			text[n] = was;
		}
		free(text);
	}
}

/* Where a format has an end, no beginning of a text is taken for the whole. */
static void
no_beginning_of_a_text_with_an_end_is_whole(void **state)
{
	static const char *const files[] = {"rocminfo/mi300x-x8.txt", "rocminfo/mi210-xnack-on.txt",
		"rocminfo/wsl-rx7900.txt", "test-backend-ops/cpu-attn-score-qjl.txt",
		"test-backend-ops/h200-fork-test-backend-ops-set_rows.log", "nvcc-version/cuda-12.4.txt",
		"nvcc-version/cuda-13.0.txt", "nvcc-version/windows-crlf.txt"};
	char path[256], kind[64], version[48], *text = NULL;
	const struct tool_answer *a;
	size_t i, n, len, end;
	int count, ops;

	(void)state;
	for (i = 0; i < str_count(files); i++) {
		snprintf(path, sizeof path, "fixtures/probes/%s", files[i]);
		snprintf(kind, sizeof kind, "%.*s", (int)strcspn(files[i], "/"), files[i]);
		assert_int_equal(plat_read_file(path, TOOL_MAX_BYTES, &text, &len, NULL), 0);
		a = answer((enum tool_kind)tool_kind_find(kind), text, len, 0);
		assert_int_equal(a->reason, NONE);
		count = a->count;
		ops = a->op_count;
		memcpy(version, a->version, sizeof version);
		for (end = len; end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '); end--)
			;
		for (n = 0; n < end; n += len > 8192 && n < end - 4096 ? 37 : 1) {
			a = answer((enum tool_kind)tool_kind_find(kind), text, n, 0);
			if (a->reason == NONE && (a->count != count || a->op_count != ops || strcmp(a->version, version) != 0))
				fail_msg("%s cut at %zu: %d devices, version %s", files[i], n, a->count, a->version);
			if (a->reason == NONE && count + ops > 0 && n + 12 < end)
				fail_msg("%s cut at %zu is whole", files[i], n);
		}
		free(text);
	}
}

static bool
is_ascii(const char *text)
{
	for (; *text != '\0'; text++)
		if ((*text & 0x80) != 0)
			return false;
	return true;
}

/* The same text as Windows and terminals hand it over. */
static size_t
dress(int how, const char *text, char *to)
{
	static const char *const marks[] = {"", "\xef\xbb\xbf", "\xff\xfe", "\xfe\xff", "\033[0m"};
	size_t n = strlen(marks[how]);

	memcpy(to, marks[how], n);
	for (; *text != '\0'; text++) {
		if (*text == '\n' && how < 4 && (n == 0 || to[n - 1] != '\r')) {
			if (how == 3)
				to[n++] = '\0';
			to[n++] = '\r';
			if (how == 2)
				to[n++] = '\0';
		}
		if (how == 3)
			to[n++] = '\0';
		to[n++] = *text;
		if (how == 2)
			to[n++] = '\0';
		if (how == 4 && *text == '\n')
			n += (size_t)snprintf(to + n, 16, "\033[1;32m");
	}
	return n;
}

static void
no_dress_changes_what_is_concluded(void **state)
{
	static const char *const names[] = {"CRLF", "a mark and CRLF", "UTF-16LE", "UTF-16BE", "colours"};
	static char text[65536];
	const struct tool_answer *a;
	size_t i, n;
	int how;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		for (how = 0; how < (int)str_count(names); how++) {
			/* letters beyond ASCII would have to be encoded anew */
			if ((how == 2 || how == 3) && !is_ascii(rows[i].text))
				continue;
			assert_true(strlen(rows[i].text) * 8 + 8 < sizeof text);
			n = dress(how, rows[i].text, text);
			a = answer(rows[i].kind, text, n, rows[i].exit);
			if (a->reason != rows[i].reason || a->count != rows[i].devices)
				fail_msg("row %zu in %s: wanted %s and %d devices, got %s and %d (%s)\n%s", i, names[how],
					reason_name(rows[i].reason), rows[i].devices, reason_name(a->reason), a->count,
					a->detail, rows[i].text);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outputs_that_nobody_recorded_are_concluded_right),
		cmocka_unit_test(a_column_that_is_new_to_us_makes_no_row_of_the_header),
		cmocka_unit_test(a_performance_state_is_no_name),
		cmocka_unit_test(virtual_profiles_are_known_in_every_tool),
		cmocka_unit_test(cards_of_the_field_are_read_as_a_person_reads_them),
		cmocka_unit_test(a_lone_enabled_is_no_mode_of_slices),
		cmocka_unit_test(nvcc_without_its_last_end_of_line_tells_the_release),
		cmocka_unit_test(an_id_of_no_use_is_no_id),
		cmocka_unit_test(the_name_of_a_driver_has_one_form),
		cmocka_unit_test(sixteen_cards_of_seven_slices_fit),
		cmocka_unit_test(words_of_a_tool_that_saw_no_gpu_beat_its_exit_code),
		cmocka_unit_test(no_damaged_byte_makes_a_refusal_good),
		cmocka_unit_test(no_beginning_of_a_text_with_an_end_is_whole),
		cmocka_unit_test(no_dress_changes_what_is_concluded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
