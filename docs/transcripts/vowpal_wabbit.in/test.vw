1 2 'ad0 |page site=shop |user device=phone hour:0.6
-1 'ad1 |page site=news |user device=desk hour:0.94
-1 'ad2 |page site=mail |user device=phone hour:0.77
1 'ad3 |page site=mail |user device=desk hour:0.91
-1 'ad4 |page site=mail |user device=phone hour:0.18
-1 'ad5 |page site=mail |user device=phone hour:0.63
1 'ad6 |page site=shop |user device=phone hour:0.84
-1 'ad7 |page site=mail |user device=phone hour:0.04
1 'ad8 |page site=news |user device=phone hour:0.98
-1 'ad9 |page site=shop |user device=phone hour:0.76
1 2 'ad10 |page site=mail |user device=desk hour:0.88
1 'ad11 |page site=shop |user device=desk hour:0.88
-1 'ad12 |page site=mail |user device=phone hour:0.23
1 'ad13 |page site=shop |user device=phone hour:0.32
-1 'ad14 |page site=shop |user device=phone hour:0.81
-1 'ad15 |page site=mail |user device=desk hour:0.59
1 'ad16 |page site=shop |user device=desk hour:0.72
1 'ad17 |page site=shop |user device=desk hour:0.58
1 'ad18 |page site=news |user device=phone hour:0.92
-1 'ad19 |page site=mail |user device=desk hour:0.28
1 2 'ad20 |page site=mail |user device=desk hour:0.38
-1 'ad21 |page site=mail |user device=phone hour:0.94
1 'ad22 |page site=shop |user device=desk hour:0.54
-1 'ad23 |page site=news |user device=desk hour:0.49
1 'ad24 |page site=news |user device=phone hour:0.34
1 'ad25 |page site=news |user device=phone hour:0.44
-1 'ad26 |page site=news |user device=desk hour:0.24
1 'ad27 |page site=news |user device=phone hour:0.76
-1 'ad28 |page site=mail |user device=desk hour:0.82
1 'ad29 |page site=mail |user device=desk hour:0.26
1 2 'ad30 |page site=mail |user device=desk hour:0.03
-1 'ad31 |page site=shop |user device=phone hour:0.95
-1 'ad32 |page site=news |user device=desk hour:0.03
-1 'ad33 |page site=mail |user device=phone hour:0.46
1 'ad34 |page site=mail |user device=desk hour:0.55
-1 'ad35 |page site=shop |user device=phone hour:0.67
1 'ad36 |page site=news |user device=desk hour:0.88
1 'ad37 |page site=news |user device=phone hour:0.34
-1 'ad38 |page site=mail |user device=phone hour:0.08
-1 'ad39 |page site=shop |user device=desk hour:0.42
-1 2 'ad40 |page site=mail |user device=phone hour:0.9
1 'ad41 |page site=shop |user device=phone hour:0.48
-1 'ad42 |page site=mail |user device=phone hour:0.07
-1 'ad43 |page site=news |user device=desk hour:0.36
-1 'ad44 |page site=mail |user device=phone hour:0.93
-1 'ad45 |page site=news |user device=desk hour:0.34
1 'ad46 |page site=news |user device=desk hour:0.8
1 'ad47 |page site=shop |user device=desk hour:0.05
1 'ad48 |page site=news |user device=phone hour:0.51
1 'ad49 |page site=news |user device=phone hour:0.12
-1 2 'ad50 |page site=news |user device=desk hour:0.1
-1 'ad51 |page site=mail |user device=desk hour:0.16
1 'ad52 |page site=news |user device=phone hour:0.32
1 'ad53 |page site=shop |user device=desk hour:0.88
1 'ad54 |page site=news |user device=phone hour:0.6
1 'ad55 |page site=mail |user device=desk hour:0.58
1 'ad56 |page site=mail |user device=desk hour:0.29
1 'ad57 |page site=shop |user device=desk hour:0.61
-1 'ad58 |page site=mail |user device=phone hour:0.01
1 'ad59 |page site=shop |user device=desk hour:0.22
-1 2 'ad60 |page site=news |user device=desk hour:0.65
1 'ad61 |page site=news |user device=phone hour:0.75
-1 'ad62 |page site=mail |user device=phone hour:0.46
-1 'ad63 |page site=mail |user device=desk hour:0.01
-1 'ad64 |page site=news |user device=desk hour:0.86
-1 'ad65 |page site=news |user device=desk hour:0.83
-1 'ad66 |page site=news |user device=desk hour:0.54
-1 'ad67 |page site=mail |user device=phone hour:0.26
1 'ad68 |page site=shop |user device=desk hour:0.89
-1 'ad69 |page site=shop |user device=phone hour:0.54
-1 2 'ad70 |page site=mail |user device=phone hour:0.93
-1 'ad71 |page site=shop |user device=phone hour:0.39
-1 'ad72 |page site=news |user device=desk hour:0.94
-1 'ad73 |page site=mail |user device=desk hour:0.81
-1 'ad74 |page site=mail |user device=desk hour:0.94
-1 'ad75 |page site=shop |user device=phone hour:0.12
-1 'ad76 |page site=news |user device=desk hour:0.14
-1 'ad77 |page site=shop |user device=phone hour:0.54
1 'ad78 |page site=news |user device=phone hour:0.24
1 'ad79 |page site=news |user device=phone hour:0.1
-1 2 'ad80 |page site=shop |user device=phone hour:0.77
-1 'ad81 |page site=news |user device=desk hour:0.74
1 'ad82 |page site=mail |user device=desk hour:0.97
1 'ad83 |page site=news |user device=phone hour:0.67
1 'ad84 |page site=shop |user device=desk hour:0.12
-1 'ad85 |page site=shop |user device=phone hour:0.13
-1 'ad86 |page site=shop |user device=phone hour:0.76
-1 'ad87 |page site=shop |user device=phone hour:0.44
1 'ad88 |page site=mail |user device=desk hour:0.62
-1 'ad89 |page site=news |user device=desk hour:0.89
-1 2 'ad90 |page site=shop |user device=desk hour:0.19
-1 'ad91 |page site=mail |user device=phone hour:0.92
-1 'ad92 |page site=news |user device=desk hour:0.98
1 'ad93 |page site=mail |user device=desk hour:0.92
-1 'ad94 |page site=news |user device=desk hour:0.57
1 'ad95 |page site=news |user device=phone hour:0.14
1 'ad96 |page site=shop |user device=desk hour:0.92
1 'ad97 |page site=mail |user device=desk hour:0.75
-1 'ad98 |page site=mail |user device=phone hour:0.13
1 'ad99 |page site=mail |user device=desk hour:0.41
