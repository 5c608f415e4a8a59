# The libraries that decode images (src/runtime/kernels/images), as one object that is linked into the compiler and into
# artifacts that decode: Debian's static libraries, of which only what is called below stays visible. An object of that
# kind may not reach beyond the C library, nor print, read files, or end the process: what the codecs call for that is
# our own code instead (codec_world.cpp), and so is their memory.
set(codec_archives libjpeg.a libpng16.a libtiff.a libwebp.a libwebpdemux.a libopenjp2.a libz.a libdeflate.a)

# What the readers call.
set(codec_functions
  jpeg_std_error jpeg_CreateDecompress jpeg_mem_src jpeg_read_header jpeg_start_decompress jpeg_read_scanlines
  png_create_read_struct png_create_info_struct png_get_error_ptr png_get_io_ptr png_error png_set_read_fn png_read_info
  png_get_image_width png_get_image_height png_set_expand png_set_strip_16 png_set_strip_alpha
  png_set_interlace_handling png_read_update_info png_get_channels png_get_rowbytes png_read_row
  TIFFOpenOptionsAlloc TIFFOpenOptionsSetErrorHandlerExtR TIFFOpenOptionsSetWarningHandlerExtR TIFFClientOpenExt
  TIFFGetField TIFFGetFieldDefaulted TIFFSetField TIFFIsTiled TIFFTileSize TIFFStripSize
  TIFFTileRowSize TIFFScanlineSize TIFFReadEncodedTile TIFFReadEncodedStrip TIFFComputeTile TIFFComputeStrip
  TIFFReadRGBAImageOriented
  WebPInitDecoderConfigInternal WebPDecode WebPGetFeaturesInternal WebPDemuxInternal WebPDemuxGetFrame
  opj_create_decompress opj_stream_create opj_stream_default_create opj_set_info_handler opj_set_warning_handler
  opj_set_error_handler opj_stream_set_read_function opj_stream_set_seek_function opj_stream_set_skip_function
  opj_stream_set_user_data opj_stream_set_user_data_length opj_set_default_decoder_parameters opj_setup_decoder
  opj_read_header opj_decode)

# Compressions inside TIFF that would need more libraries, or are of historical interest.
set(absent_in_tiff LERC LZMA ZSTD WebP JBIG OJPEG PixarLog SGILog ThunderScan NeXT)

# Ours in place of the C library's and of libm's: name, and what codec_world.cpp calls it where that differs.
set(codec_world malloc calloc realloc free posix_memalign floor sqrt lrintf pow __popcountdi2=popcount
  exit=give_up abort=give_up __assert_fail=give_up stderr=stream stdout=stream)
foreach(name __fprintf_chk __vfprintf_chk fputc fwrite fflush fopen fclose ferror fread fseeko ftello fstat lseek open
    close read write mmap munmap remove getenv)
  list(APPEND codec_world ${name}=nothing)
endforeach()

set(codec_folder ${CMAKE_BINARY_DIR}/codecs)
file(MAKE_DIRECTORY ${codec_folder})
set(text "// Each says that it was set up; libtiff then says that it cannot decode.\n")
foreach(name IN LISTS absent_in_tiff)
  string(APPEND text "int TIFFInit${name}(void* file, int scheme) { (void)file; (void)scheme; return 1; }\n")
endforeach()
file(CONFIGURE OUTPUT ${codec_folder}/absent.c CONTENT "${text}" @ONLY)
set(text "")
foreach(row IN LISTS codec_world)
  string(REGEX MATCH "^([^=]+)=?(.*)$" _ ${row})
  set(to ${CMAKE_MATCH_2})
  if(NOT to)
    set(to ${CMAKE_MATCH_1})
  endif()
  string(APPEND text "${CMAKE_MATCH_1} lathe_codec_${to}\n")
endforeach()
file(CONFIGURE OUTPUT ${codec_folder}/world.txt CONTENT "${text}" @ONLY)
string(REPLACE ";" "\n" text "${codec_functions}")
file(CONFIGURE OUTPUT ${codec_folder}/functions.txt CONTENT "${text}\n" @ONLY)

find_program(LATHE_LLD ld.lld HINTS ${LATHE_LLVM_ROOT}/bin REQUIRED)
find_program(LATHE_LLVM_OBJCOPY llvm-objcopy HINTS ${LATHE_LLVM_ROOT}/bin REQUIRED)
set(archives "")
foreach(name IN LISTS codec_archives)
  find_library(path_of_${name} ${name} REQUIRED)
  list(APPEND archives ${path_of_${name}})
endforeach()
find_path(LATHE_OPENJPEG_INCLUDE openjpeg.h PATH_SUFFIXES openjpeg-2.5 REQUIRED)
list(TRANSFORM codec_functions PREPEND "--undefined=" OUTPUT_VARIABLE wanted)

add_library(lathe_codecs_absent OBJECT ${codec_folder}/absent.c)
target_compile_options(lathe_codecs_absent PRIVATE
  -fno-sanitize=all -fno-profile-instr-generate -fno-coverage-mapping)
set(LATHE_CODECS_OBJECT ${codec_folder}/codecs.o)
add_custom_command(OUTPUT ${LATHE_CODECS_OBJECT}
  COMMAND ${LATHE_LLD} -r -o ${LATHE_CODECS_OBJECT} ${wanted} $<TARGET_OBJECTS:lathe_codecs_absent> ${archives}
  COMMAND ${LATHE_LLVM_OBJCOPY} --strip-debug --keep-global-symbols=${codec_folder}/functions.txt
    --redefine-syms=${codec_folder}/world.txt --set-symbols-visibility=${codec_folder}/functions.txt=hidden
    --strip-symbol=_GLOBAL_OFFSET_TABLE_ # that nothing refers to; the linker would make room for it
    ${LATHE_CODECS_OBJECT}
  DEPENDS lathe_codecs_absent $<TARGET_OBJECTS:lathe_codecs_absent> ${archives}
    ${codec_folder}/functions.txt ${codec_folder}/world.txt
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(lathe_codecs STATIC ${LATHE_CODECS_OBJECT})
set_target_properties(lathe_codecs PROPERTIES LINKER_LANGUAGE C)
set_source_files_properties(${LATHE_CODECS_OBJECT} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
target_include_directories(lathe_codecs SYSTEM INTERFACE ${LATHE_OPENJPEG_INCLUDE})
