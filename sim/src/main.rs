/// Counts what each thread allocates, for `bench`.
#[global_allocator]
static ALLOCATOR: densa_alloc::CountingAllocator = densa_alloc::CountingAllocator::system();

fn main() -> std::process::ExitCode {
    revenant_sim::cli::main()
}
