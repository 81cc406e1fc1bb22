//! `bindgen MODULE DIRECTORY`: writes the module with its glue, for a page, into the directory.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, directory] = arguments.as_slice() else {
        eprintln!("usage: bindgen MODULE DIRECTORY");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    let generated = bindgen.input_path(module).web(true).map(|bindgen| {
        // `init()` finds the module beside the glue; names are for whoever looks into it before it is optimised.
        bindgen
            .typescript(true)
            .omit_default_module_path(false)
            .remove_producers_section(true)
            .generate(directory)
    });
    match generated.and_then(|generated| generated) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem:?}");
            ExitCode::FAILURE
        }
    }
}
