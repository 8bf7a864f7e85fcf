use super::*;
use sparse_core::update_rules::{AdaGrad, Adam, Ftrl, GroupAdaGrad, Lamb, Sgd, Svrg};

#[test]
fn rules_that_threads_cannot_share() {
    fn shares<R: UpdateRule>(rule: R, copies: bool) -> bool {
        why_not_racing::<R, f32>(&rule, copies).is_none()
    }
    let momentum = Sgd { momentum: 0.9, ..Sgd::default() };
    let touched = Sgd { lazy_update: LazyUpdate::Touched, ..momentum.clone() };
    let penalised = AdaGrad { l1: 0.1, ..AdaGrad::default() };
    let adam = Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() };
    let leader = Ftrl { lazy_update: LazyUpdate::Touched, ..Ftrl::default() };
    for copies in [false, true] {
        assert!(shares(Sgd::default(), copies) && shares(AdaGrad::default(), copies));
        assert!(shares(leader.clone(), copies));
        assert!(!shares(momentum.clone(), copies) && !shares(penalised.clone(), copies));
        assert!(
            !shares(Svrg::<Sgd>::default(), copies) && !shares(GroupAdaGrad::default(), copies)
        );
        assert!(!shares(Lamb::default(), copies));
        // Momentum and decaying means do not add up.
        assert_eq!(
            (shares(touched.clone(), copies), shares(adam.clone(), copies)),
            (!copies, !copies)
        );
    }
}
