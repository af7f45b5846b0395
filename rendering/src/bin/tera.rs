//! Renders Tera templates when it is started for that, as every program does that renders charts.

fn main() {
    rendering::serve_tera();
    eprintln!("this program renders templates for another one, and does nothing else");
    std::process::exit(64);
}
