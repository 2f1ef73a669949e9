fn main() -> std::process::ExitCode {
    revenant_sim::cli::main()
}
