use super::*;
use nnz_optim::{AdaGrad, Adam, Ftrl, GroupAdaGrad, Lamb, Sgd, Svrg};

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

#[test]
fn n2_copies_of_weights_begin_with_the_states_that_give_them() {
    let rule = Ftrl { l1: 0.5, l2: 1.0, learning_rate: 0.5, ..Ftrl::default() };
    let step = rule.step::<f32>(0.5, 1.0, 0);
    let (mut weights, mut states) = ([2.0f32, 0.0, -1.0], [0.0f32, 0.0, 0.0, 0.0, 0.25, 4.0]);
    imply_states::<Ftrl, f32>(&step, (&mut weights, &mut states), 2);
    assert_eq!(states, [-6.5, 0.0, 0.0, 0.0, 0.25, 4.0]);
}
