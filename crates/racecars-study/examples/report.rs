fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let d = racecars_study::report::Digest::read(a[1].as_ref()).unwrap();
    eprintln!("read {:?}", t.elapsed());
    let t = std::time::Instant::now();
    std::fs::write(&a[2], racecars_study::report::page(a[1].as_ref(), d.as_ref(), false)).unwrap();
    eprintln!("page {:?}", t.elapsed());
}
