//! What a client costs a server over real QUIC: `cargo run --release -p halftrack-io --example crowd -- 100 10`.
//!
//! So many clients for so many seconds, in another process, so that the server's CPU time is its own (Linux only).

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, Rails};
use halftrack::client::ClientConfig;
use halftrack::server::ServerConfig;
use halftrack::{Cadence, PlayerName};
use halftrack_io::{Certificate, Door, Endpoint, EndpointConfig, Limits, Room, RoomConfig, Trust, connect};

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [count, seconds] => serve(count, seconds).await,
        [count, seconds, url, hash] => {
            play(count.parse()?, Duration::from_secs(seconds.parse()?), url, hash).await
        }
        _ => Err("usage: crowd CLIENTS SECONDS".into()),
    }
}

async fn serve(count: &str, seconds: &str) -> Result<(), Failed> {
    let clients: usize = count.parse()?;
    let server = ServerConfig { capacity: clients, max_connections: clients + 16, ..ServerConfig::default() };
    let certificate = Certificate::self_signed(&["localhost"], Certificate::MAX_VALIDITY)?;
    let room = Room::start(RoomConfig { server, ..RoomConfig::default() }, Rails::default())?;
    // All of them come from one address.
    let limits = Limits { max_per_address: clients, handshake_burst: clients, ..Limits::default() };
    let door = Door::new(Arc::new(room.handle()), limits)?;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, &certificate, door, EndpointConfig::default())?;
    let url = format!("quic://{}", endpoint.address());
    let mut bots = Command::new(std::env::current_exe()?)
        .args([count, seconds, &url, &certificate.hash().to_string()])
        .spawn()?;
    while room.stats().players < clients {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, cpu) = (room.stats(), cpu_time()?);
    while bots.try_wait()?.is_none() && room.stats().connections == clients {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (after, cpu) = (room.stats(), cpu_time()? - cpu);
    let ticks = (after.server.ticks - before.server.ticks).max(1);
    let bytes = after.datagrams_out.bytes - before.datagrams_out.bytes;
    let datagrams = (after.datagrams_out.count - before.datagrams_out.count).max(1);
    println!("{clients} clients, {ticks} ticks of {:?}", server.cadence.interval());
    println!(
        "CPU of the process per client and tick: {:.1} us",
        cpu.as_secs_f64() * 1e6 / ticks as f64 / clients as f64
    );
    println!(
        "bytes per snapshot: {}, datagrams up per tick and client: {:.2}",
        bytes / datagrams,
        (after.datagrams_in.count - before.datagrams_in.count) as f64 / ticks as f64 / clients as f64
    );
    println!(
        "tick: p50 {:?}, p99 {:?}, longest {:?}",
        after.tick_time.percentile(50),
        after.tick_time.percentile(99),
        after.tick_time.longest()
    );
    println!(
        "tick began late by: p50 {:?}, p99 {:?}; overruns {}",
        after.tick_delay.percentile(50),
        after.tick_delay.percentile(99),
        after.overruns
    );
    println!(
        "dropped: in {}, out {}; wakes per tick {:.1}; cut {}",
        after.dropped_in,
        after.dropped_out,
        (after.wakes - before.wakes) as f64 / ticks as f64,
        after.cut
    );
    let _ = bots.wait()?;
    room.stop();
    endpoint.stop().await;
    Ok(())
}

async fn play(count: usize, span: Duration, url: &str, hash: &str) -> Result<(), Failed> {
    let mut bots = vec![];
    for number in 0..count {
        let name = PlayerName::new(&format!("bot {number}"))?;
        let config = ClientConfig::new(name, Cadence::default(), Arc::new(Cart));
        let bot = connect::<Cart>(url.parse()?, Trust::Hashes(vec![hash.parse()?]), config)?;
        bot.logged_in().await?;
        bots.push(bot);
    }
    let mut frames = tokio::time::interval(Duration::from_micros(16_667));
    let end = tokio::time::Instant::now() + span + Duration::from_secs(1);
    for frame in 0_usize.. {
        frames.tick().await;
        for (number, bot) in bots.iter().enumerate() {
            // Back and forth, everybody at other moments.
            bot.set_input([3, 3, 0, -3, -3, 0][(frame / 20 + number) % 6]);
            bot.frame();
        }
        if tokio::time::Instant::now() >= end {
            break;
        }
    }
    let corrections = bots.iter().map(|bot| bot.read(|client| client.corrections()));
    let eased: u64 = corrections.map(|all| all.eased + all.snapped).sum();
    let cuts: u64 = bots.iter().map(|bot| bot.stats().disconnects).sum();
    println!("clients: {eased} corrections, {cuts} cuts");
    Ok(())
}

/// User and system time of the process, in ticks of 10 ms.
fn cpu_time() -> Result<Duration, Failed> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit_once(')').ok_or("no name")?.1.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}
