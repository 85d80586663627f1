"""The sizes and tolerances at which the library changes its method, in one table.

Each line: name, value, unit, and why this value. Changing one changes speed, or where an answer
stops being right to rounding, never what is computed.
"""

# --- sizes of kernel matrices ------------------------------------------------------------------------

PROFILE_PAYS = 2**16  # entries; from here a profile repays its construction (0.1 s when compiled)
SMALL_TILE = 32  # points; side of the tiles of small matrices, one program for all their sizes
LIGHT_TILE = 8  # points; the same where an entry is a sum of many terms
FEW_TILES = 16  # computed between two words on how far it is
TINY_TILE = 4  # points; the same where each entry costs a two-dimensional quadrature
WELL_COMPILED = 2.0  # seconds, by estimate, of a small matrix from which compiling well repays
SMALL_TILES = 16  # tiles; up to 128 x 128 points compiling costs more than running, so it is cheap
CAPACITIES = (32, 128, 256, 512, 1024, 2048)  # points; sizes for which large programs are compiled
KNOWN_LENGTH = 2048  # points; beyond, tiles of unused rows are computed rather than counted
CAPACITY_STEP = 256  # points; spacing of the sizes beyond, at most 12 % of unused rows
# points; side of a CPU's tile up to so many points, so that few rows overlap
TILE_SIDES = {1024: 128, 3072: 256}
TILE_SIDE = 512  # points; beyond, and where sizes are exact: a tile's state stays in the cache
DEVICE_SIDE = 2**14  # points; a GPU wants few and large tiles
DEVICE_PRODUCT_SIDE = 2**13  # points; the same where tiles are multiplied and forgotten
HALVED_POINTS = 2**13  # points; from here a GPU computes half of a symmetric matrix, in tiles of
HALVED_SIDE = 2**10  # points
FUSED_POINTS = 2**14  # points; from here the kernel for Hopper GPUs has work for all of the device
FUSED_COLUMNS = 3  # right-hand sides; it takes them one by one, XLA all at once
FUSED_ERROR = 1e-6  # of the largest sum of terms; a first product that errs by more is not used
UNROLLED = 16  # activations; up to here a GPU computes all layers of an entry at once
FEATURES = (16, 32, 64)  # features; numbers beyond FEW_FEATURES are filled up to one of these
DIAGONAL_CHUNK = 2**12  # points; series coefficients of one chunk are some megabytes
MATVEC_ENTRIES = 2**22  # entries; a strip of the matrix that is multiplied and forgotten
MANY = 2**12  # entries; from here a long series (1e-9) is preferred to a quadrature for each
PATIENT_SECONDS = 300  # seconds that a deep network may take, by estimate, without a warning
PATIENCE = 60  # seconds that quadratures may take, by estimate, without a warning
PLANE_SECONDS = 5e-4  # of one processor for an entry's quadrature in the plane, well compiled

BRIEF_BLOCK = 2**17  # pairs of pixels; up to here compiling a layer costs more than running it
WAITED_BYTES = 2**23  # of an array of a block; from here layers are started one after the other
BRIEF_MATRIX = 2**18  # the same where the block is the whole of what is asked for
BRIEF_SLICES = 2**19  # pairs of pixels and layers; the same for slices

# pairs of pixels in a slice; one array of it, a megabyte in float32, stays in the cache
SLICE_PAIRS = 2**18
SLICE_SIDE = 32  # images; side of a tile of slices
FEW_IMAGES = 16  # along the innermost loop of slices
# pairs of pixels; so many rows of such a tile go through all layers at once, in a core's own cache
SLICE_ROWS_PAIRS = 2**16
FLAT_SIDE = 64  # images; side of a flattened tile, which consists of
FLAT_GROUP = 16  # images; squares of this side, one after the other
# shares in which pixels are summed: one long sum in single precision loses a digit
SUMMED_ABREAST = 16
# pixels that are summed up before they are added to those of other slices
SUMMED_TOGETHER = 8
DIAGONAL_IMAGES = 128  # images that meet themselves at once
# repetitions; beyond, a loop takes twice as long, but the first call stays short
SLICE_UNROLLED = 12
# pairs of pixels; on a GPU a slice must outweigh the start of its kernels
DEVICE_SLICE_PAIRS = 2**22
DEVICE_SLICE_SIDE = 128  # images; side of a tile of slices there
DEVICE_FLAT_PAIRS = 2**26  # pairs of pixels; a flattened tile, one slice, must fill a GPU by itself
DEVICE_FLAT_SIDE = 512  # images; side of such a tile
DEVICE_SLICE_UNROLLED = 16  # repetitions; a loop copies what it carries
DEVICE_COARSE_ENTRIES = 2**26  # pairs of pixels behind the first pool in a tile of images on a GPU
COARSE_ENTRIES = 2**22  # pairs of pixels behind the first pool in a tile of images
BLOCK_ENTRIES = 2**23  # pairs of pixels in a tile of images
BLOCK_SIDE = 64  # images; side of such a tile
GROUP_BYTES = 2**20  # of each matrix of a group of pairs that goes through all layers on a core
WIDEST_CHOICE = 64  # times the range of variances that is met; what serves more is not used again
MOST_CHOICES = 32  # of them that are kept
LARGE_PAGE = 2**14  # numbers that a map asks of an input; more are laid out for pairs beforehand
KEPT_BYTES = 2**29  # of what is known of single images; beyond, it is found anew for each tile

# --- correlations ------------------------------------------------------------------------------------

FEW_FEATURES = 8  # features; up to here differences are cheaper than a matrix product
CHEAP_DIFFERENCES = 2**21  # multiplications; below this the same holds for any number of features
# multiplications; the same for NumPy, which writes every difference to memory
HOST_DIFFERENCES = 2**13
# 1 - |rho|; below, a matrix product's rounding shows in deep networks (1e-12 at depth 100)
NEARLY_PARALLEL = {"float64": 1e-3, "float32": 1e-2}
PICKS = 8  # entries of a row; so many nearly parallel ones are repaired one by one

# products; up to so many a pair of similar inputs is compared entry by entry behind a pool
REFINED = 2**18
# of the kernels, by estimate, that rounding moves behind a pool; beyond, float64 is used
DOUBTED = 8e-7
SIMILAR = 1e-3  # 1 - rho of pooled pixels; below, it is computed from differences

# --- profiles ----------------------------------------------------------------------------------------

NODES = 256  # Chebyshev nodes; enough for depth 200 and for residual branches of weight 0.01
CUT_OFF = {"float64": 1e-15, "float32": 2e-8}  # relative; coefficients below are not used
# relative; a profile with a larger error is not used
CERTIFIED = {"float64": 1e-13, "float32": 1e-6}
# relative; a profile is summed in powers up to here
POWERS_ERROR = {"float64": 2e-15, "float32": 4e-7}
EQUAL_NORMS = 8  # units of rounding; squared norms that differ by less count as equal

# --- Gaussian moments --------------------------------------------------------------------------------

VARIANCES = {
    "float64": (1e-307, 1e306),
    "float32": (1e-36, 1e36),
}  # variances; formulas are evaluated between these, beyond them correlations have settled
# second moments; beyond, and below its inverse, products are not left to float32
REPRESENTABLE = 1e18
DEFAULT_TERMS = 256  # terms of a Hermite series where variances are not known beforehand
SHORT_SERIES = 128  # terms; a longer Hermite series is slower than a table
MOST_TERMS = 1024  # terms; a longer series is slower than a quadrature
PLANE_NODES = 40  # nodes of each panel of a quadrature in the plane; 1e-13 with kinks at its edges
STEEP_NODES = 56  # the same for steep fronts without a kink
REACH = 8.8  # standard deviations; what a Gaussian holds beyond is below 1e-17

# --- compilation -------------------------------------------------------------------------------------

# Options of XLA for programs that run for less time than it takes to compile them well: on a CPU they
# compile five times faster and run two to three times slower (`_base/compile.py`).
CHEAP_COMPILATION = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}

# The same for programs of many elementwise loops over large arrays, which run as fast: two fifths of the time,
# half of the memory. Gathers of rows even run faster than as XLA fuses them otherwise.
LIGHT_COMPILATION = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}

# The same for programs that run side by side, one on each core: their loops are not divided among the cores.
_ALONE = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
LIGHT_LONE_COMPILATION = LIGHT_COMPILATION | _ALONE

# The same for programs that run long: vectors as wide as the processor has, also where XLA prefers half of that.
LONE_COMPILATION = {"xla_cpu_prefer_vector_width": 512} | _ALONE

# The same with LLVM's first level, which vectorises loops already: seven eighths of the time. Layers of blocks run as
# fast, slices in single precision 5 % slower.
LEAN_LONE_COMPILATION = LONE_COMPILATION | {"xla_backend_optimization_level": 1}

# The same for programs of a GPU whose products of matrices take less time than the search for their fastest way.
UNTUNED_COMPILATION = {"xla_gpu_autotune_level": 0}
TUNED_POINTS = 2**18  # points; from here the search repays: 4 s, for some 20 of 10^6 points
MOST_CORES = 16  # programs side by side
COMPILERS = 8  # threads that compile what will be needed
COMPILED_AHEAD = 32  # programs of one function that are kept

# --- finite networks ---------------------------------------------------------------------------------
# numbers in all patches of a batch; beyond, taps of a window are multiplied one by one
PATCH_ENTRIES = 2**24
MOST_TAPS = 64  # of a window; beyond, its convolution is left to XLA also on the host
