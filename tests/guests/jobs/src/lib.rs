//! `/work MILLISECONDS TEXT` queues a job that takes so long and then writes the text; `/many N` queues N short ones in
//! one run; `/once KEY` one under a unique key; `/spin`, `/crash` and `/flaky` those that go wrong; `/cancel` takes the
//! last one back.

use botyard_sdk::prelude::*;

#[plugin]
mod jobs {
    fn answer(ctx: &Ctx, queued: Result<u64, JobError>) -> Result<(), Error> {
        match queued {
            Ok(id) => {
                ctx.storage().chat().set("last", &id)?;
                ctx.reply("queued");
            }
            Err(JobError::Full(_)) => drop(ctx.reply("busy")),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    #[command("work")]
    fn work(ctx: &mut Ctx) -> Result<(), Error> {
        let (time, text) = ctx.args().split_once(' ').unwrap_or((ctx.args(), "now"));
        answer(ctx, ctx.job("work", (time.parse::<u64>()?, text)).enqueue())
    }

    #[command("many")]
    fn many(ctx: &mut Ctx) -> Result<(), Error> {
        let wanted: u32 = ctx.args().parse()?;
        let queued = (0..wanted).take_while(|n| ctx.job("work", (50, n.to_string())).enqueue().is_ok()).count();
        ctx.reply(format!("queued {queued}"));
        Ok(())
    }

    #[command("once")]
    fn once(ctx: &mut Ctx) -> Result<(), Error> {
        answer(ctx, ctx.job("work", (600, ctx.args())).unique(ctx.args()).enqueue())
    }

    #[command("spin", "crash", "flaky", "nobody")]
    fn wrong(ctx: &mut Ctx) -> Result<(), Error> {
        answer(ctx, ctx.job(ctx.command().unwrap_or_default(), ctx.args()).enqueue())
    }

    #[command("cancel")]
    fn cancel(ctx: &mut Ctx) -> Result<(), Error> {
        let last: u64 = ctx.storage().chat().get("last")?.unwrap_or_default();
        let was = ctx.job_status(last).map_or("gone", |job| if job.running { "running" } else { "waiting" });
        let cancelled = ctx.cancel_job(last);
        ctx.reply(format!("{was} {cancelled}"));
        Ok(())
    }

    #[job("work")]
    fn at_work(ctx: &mut Ctx) -> Result<(), Error> {
        let (time, text): (u64, String) = ctx.payload()?;
        ctx.sleep(Duration::from_millis(time));
        let done = ctx.storage().chat().increment("done", 1)?;
        ctx.reply(format!("{text}: {done}"));
        Ok(())
    }

    #[job("spin")]
    fn spin(_ctx: &mut Ctx) {
        loop {
            std::hint::black_box(0);
        }
    }

    #[job("crash")]
    fn crash(_ctx: &mut Ctx) {
        panic!("on purpose");
    }

    #[job("flaky")]
    fn flaky(ctx: &mut Ctx) -> Result<(), Error> {
        if ctx.attempt() < 3 {
            return Err(Error::new("not yet"));
        }
        ctx.reply(format!("attempt {}", ctx.attempt()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::jobs::Plugin;

    #[test]
    fn work_is_done_later() {
        let mut bot = Bot::<Plugin>::new().most_jobs(1);
        assert_eq!(bot.text("/work 10 tea").texts(), ["queued"]);
        assert_eq!(bot.text("/work 10 more").texts(), ["busy"]);
        assert_eq!(bot.run_jobs()[0].texts(), ["tea: 1"]);
        assert_eq!(bot.waiting_jobs(), 0);
    }

    #[test]
    fn what_fails_stays_and_what_is_cancelled_goes() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/flaky");
        assert!(bot.run_jobs()[0].result.is_err());
        bot.run_jobs();
        assert_eq!(bot.run_jobs()[0].texts(), ["attempt 3"]);
        bot.text("/work 10 tea");
        assert_eq!(bot.text("/cancel").texts(), ["waiting true"]);
        assert!(bot.run_jobs().is_empty());
    }
}
