fn main() {
    let mut a = std::env::args().skip(1);
    let t = a.next().unwrap();
    let d = a.next().unwrap();
    let f = halftrack_fuzz::TARGETS.iter().find(|x| x.0 == t).unwrap().1;
    for e in std::fs::read_dir(d).unwrap() {
        let p = e.unwrap().path();
        let b = std::fs::read(&p).unwrap();
        let s = std::time::Instant::now();
        f(&b);
        if s.elapsed().as_millis() > 100 {
            eprintln!("SLOW {:?} {p:?}", s.elapsed());
        }
    }
}
